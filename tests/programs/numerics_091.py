import torch
from collections import Counter

class Deck:
    def __init__(self, seed): self.g = torch.Generator().manual_seed(seed); self.cards = torch.randperm(20, generator=self.g).tolist()
    def __iter__(self):
        while self.cards: yield self.cards.pop()
    def __len__(self): return len(self.cards)

def score(hand):
    t = torch.tensor(hand) % 10 + 1
    s = int(t.sum())
    return s + 10 if s <= 11 and (t == 1).any() else s

def play(deck, stand):
    it, hand = iter(deck), []
    for card in it:
        hand.append(card)
        if (s := score(hand)) >= stand: return s, hand
    return None, hand

def program(seed, stand, rounds):
    deck, tally, hands = Deck(seed), Counter(), []
    for r in range(rounds):
        s, hand = play(deck, stand)
        hands.append(hand)
        match s:
            case None: tally['empty'] += 1; break
            case 21: tally['win'] += 1
            case n if n > 21: tally['bust'] += 1; print('bust', n)
            case _: tally['stand'] += 1
    tally.subtract(['bust'])
    hist = torch.zeros(10, dtype=torch.long).scatter_add(0, torch.tensor(sum(hands, []), dtype=torch.long) % 10, torch.ones(sum(map(len, hands)), dtype=torch.long))
    return tally, +tally, hist, hands, len(deck), bool(deck), tally.total()

CALLS = ["(0, 17, 3)", "(0, 17, 3)", "(1, 12, 9)", "(1, 40, 2)", "(2, 5, 0)"]
