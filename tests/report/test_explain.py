"""`framejit.explain` and `framejit.report`: they say what a counting backend saw."""

import html.parser
import inspect
import json
import linecache
import os
import pickle
import re
import shutil
import subprocess
import sys
import warnings

import explained_programs as explained
import pytest
import torch

import framejit
from checking import CountingBackend, calls_made
from framejit.report import events
from framejit.report.drawing import picture
from framejit.report.explanation import Explanation, Node
from framejit.report.problems import problems
from threads import in_threads


@pytest.fixture(autouse=True)
def fresh():
    framejit.reset()
    yield
    framejit.reset()


def marked(word, functions=(explained.helper, explained.program)):
    """The numbers of the lines of these functions that end in ``# word``."""
    found = set()
    for function in functions:
        lines, first = inspect.getsourcelines(function)
        found |= {i for i, line in enumerate(lines, first) if line.rstrip().endswith(f"# {word}")}
    return found


def case(name):
    """What is compiled, what counts, the arguments, and the functions whose lines are marked."""
    program, functions = explained.CASES[name]
    made = program() if isinstance(program, type) else program
    return made, CountingBackend(), (torch.ones(3), 3), functions


@pytest.mark.parametrize("name", explained.CASES)
def test_ten_programs(name):
    """Graphs and breaks are those that a counting backend saw, breaks and lines those that the
    comments say; every break names file, line, code, reason and fix."""
    program, backend, arguments, functions = case(name)
    with events.recording(events.GraphBreak) as broken:
        explanation = framejit.explain(program, backend=backend)(*arguments)
    assert explanation.graph_count == len(backend.graphs) > 0
    assert explanation.op_count == backend.ops
    assert explanation.break_count == len(broken) == sum(one.times for one in explanation.breaks)
    for one in explanation.breaks:
        assert one.filename == explained.__file__ and one.line in marked("break", functions)
        assert one.code == linecache.getline(one.filename, one.line).strip()
        assert one.identifier in problems() and one.reason and one.fix
    marks = explanation.marks(explained.__file__)
    for kind in ("captured", "break"):
        assert {n for n, mark in marks.items() if mark == kind} == marked(kind, functions)


def test_what_it_says_is_what_a_counting_backend_saw(capsys):
    backend = CountingBackend()
    explanation = framejit.explain(explained.program, backend=backend)(torch.ones(3), 3)
    torch.testing.assert_close(explanation.result, torch.full((3,), 9.0))
    assert explanation.graph_count == len(backend.graphs) == 3
    assert explanation.op_count == backend.ops == 5
    assert explanation.break_count == 2
    first, second = explanation.breaks
    assert (first.identifier, first.code) == ("FJ0101", "if y.sum() > 0:  # break")
    assert (second.identifier, second.code) == ("FJ0130", 'print("spoken")  # break')
    for one in explanation.breaks:
        assert one.filename == explained.__file__ and one.reason and one.fix
        assert one.line in marked("break")
    assert len(explanation.guards) == sum(len(entry.guards) for entry in explanation.entries)
    assert explanation.times["trace"] > 0 and explanation.recompiles == []


def test_the_second_call_explains_its_recompile():
    explainer = framejit.explain(explained.program)
    explainer(torch.ones(3), 3)
    again = explainer(torch.ones(3), 3)
    assert all(entry.reused for entry in again.entries) and again.phases == []
    (recompile,) = explainer(torch.ones(3), 4).recompiles
    assert recompile.identifiers == ("FJ0402",)
    for part in ("'n'", "it was 3", "now it is 4", "return x * n", "to avoid it"):
        assert part in recompile.reasons[0]


def test_threads_explain_their_own_calls():
    def work(number):
        for _ in range(3):
            explanation = framejit.explain(lambda x: x * number + 1)(torch.ones(2))
            found.append((explanation.graph_count, explanation.op_count))
            framejit.report()._repr_html_()

    found = []
    in_threads(work, range(4))
    assert found == [(1, 2)] * 12


def test_modules_of_rooms_that_share_a_name_with_a_function_are_found():
    import importlib

    from framejit.report import page

    assert importlib.import_module("framejit.report.page") is page
    assert callable(framejit.report) and callable(framejit.guards) and callable(framejit.comptime)
    event = pickle.loads(pickle.dumps(events.GraphBreak(reason="kept")))
    assert type(event) is events.GraphBreak and event.reason == "kept"
    explanation = framejit.explain(lambda x: x + 1)(torch.ones(2))
    assert pickle.loads(pickle.dumps(explanation)).guards == explanation.guards


def test_what_an_earlier_call_has_compiled_is_known():
    compiled = framejit.compile(explained.program, backend="eager")
    compiled(torch.ones(3), 3)
    compiled(-torch.ones(3), 3)
    explanation = framejit.explain(compiled)(torch.ones(3), 3)
    fresh = framejit.explain(explained.program)(torch.ones(3), 3)
    for known in (explanation, fresh):
        assert [(e.frame, e.operations, len(e.nodes)) for e in known.entries] == [
            (e.frame, e.operations, len(e.nodes)) for e in fresh.entries
        ]
        assert known.breaks == fresh.breaks and known.skips == []
    assert all(entry.reused for entry in explanation.entries) and explanation.phases == []
    assert not any(entry.reused for entry in fresh.entries)
    assert "* compiled by an earlier call" in str(explanation)
    assert "compiled by an earlier call" in explanation._repr_html_()


def waits():
    async def wait(x):
        return x + 1

    coroutine = framejit.explain(wait)
    return lambda x: close(coroutine(x))


def close(explanation):
    explanation.result.close()
    return explanation


def generates(x):
    yield x + 1


def full():
    compiled = framejit.compile(lambda x, name="": x + len(name), backend="eager")
    with framejit.config.patch(recompile_limit=2), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("a", "ab", "abc"):
            compiled(torch.ones(3), name)
    return framejit.explain(compiled)


def inside(block):
    def explained(x):
        with block():
            return framejit.explain(lambda x: x + 1)(x)

    return explained


def in_a_transform(x):
    found = []
    torch.vmap(lambda x: found.append(framejit.explain(lambda x: x + 1)(x)) or x)(x)
    return found[0]


NO_GRAPH = {
    "generator": (lambda: framejit.explain(generates), "FJ0301", "generators and coroutines"),
    "coroutine": (waits, "FJ0301", "generators and coroutines"),
    "limit": (full, "FJ0305", "the limit of 2 entries is reached: local 'name'"),
    "torch.compile": (
        lambda: framejit.explain(torch.compile(lambda x: x + 1, backend="eager")), "FJ0303", "made"
    ),
    "disable": (lambda: framejit.explain(framejit.disable(torch.relu)), "FJ0306", "marked"),
    "skip": (lambda: framejit.explain(framejit.skip(lambda x: x + 1)), "FJ0306", "framejit.skip"),
    "in disable": (lambda: inside(framejit.disable), "FJ0306", "inside framejit.disable()"),
    "in run": (lambda: inside(framejit.run), "FJ0306", "inside framejit.run()"),
    "off": (
        lambda: inside(lambda: framejit.config.patch(disable=True)), "FJ0306", "config.disable"
    ),
    "transform": (lambda: in_a_transform, "FJ0306", "transform"),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_GRAPH)
def test_why_there_is_no_graph_is_a_sentence(name):
    make, identifier, sentence = NO_GRAPH[name]
    call = make()
    for _ in range(2):
        explanation = call(torch.ones(3))
        (skip,) = explanation.skips
        assert explanation.graph_count == 0 and skip.identifier == identifier in problems()
        assert sentence in skip.reason and skip.frame and "framejit/" not in skip.filename
        for text in (str(explanation), explanation._repr_html_()):
            assert identifier in text


def test_a_function_without_an_operation_says_so():
    explanation = framejit.explain(lambda x: 3)(torch.ones(3))
    assert explanation.no_graph == str(explanation).splitlines()[1]
    assert "no graph [FJ0302]" in explanation._repr_html_()
    assert framejit.explain(lambda x: x + 1)(torch.ones(3)).no_graph == ""
    assert framejit.report().no_graph == ""


def test_c_functions_are_named_as_users_know_them():
    for function, name in ((torch.sin, "<torch.sin>:1"), (torch.ones(3).add, "<builtins.add>:1")):
        explanation = framejit.explain(function)(torch.ones(3))
        assert explanation.graph_count == 1 and explanation.graphs[0].place == name
        for text in (str(explanation), explanation._repr_html_(), str(explanation.guards)):
            assert "callables.py" not in text and "_python_function" not in text


def test_the_report_is_about_the_whole_process(capsys):
    compiled = framejit.compile(explained.program, backend="eager")
    compiled(torch.ones(3), 3)
    with framejit.optimize("eager"):
        explained.helper(-torch.ones(3))
    report = framejit.report()
    assert report.graph_count == 5
    assert report.op_count == sum(e.operations for e in events.history(events.GraphCompiled))
    assert [one.times for one in report.breaks] == [2, 1]
    assert marked("break") < set(report.marks(explained.__file__))


def test_it_keeps_nothing_alive():
    import gc
    import weakref

    class Held(torch.nn.Module):
        def forward(self, x):
            return x + 1

    model = Held()
    explanation = framejit.explain(model)(torch.ones(2))
    explanation.result = None
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None and explanation.graph_count == 1
    assert "add" in explanation._repr_html_()


def test_it_prints_well(capsys):
    explanation = framejit.explain(explained.program)(torch.ones(3), 3)
    text = str(explanation)
    assert text.startswith("3 graphs, 2 graph breaks, 5 operations, ")
    for part in ("[FJ0101] explained_programs.py:", "if y.sum() > 0:", "torch.where", "helper."):
        assert part in text
    assert "\x1b" not in text
    import rich.console

    console = rich.console.Console(width=100, record=True, file=open("/dev/null", "w"))
    console.print(explanation)
    assert "3 graphs" in console.export_text()


def test_an_explainer_is_explained_as_what_it_is_of():
    explainer = framejit.explain(explained.program)
    assert framejit.explain(explainer) is explainer
    with pytest.raises(TypeError, match=r"explain\(\) got an unexpected keyword argument 'bogus'"):
        framejit.explain(explained.program, bogus=1)


def test_an_explanation_in_captured_code_is_about_the_program_only():
    def outer(x):
        return framejit.explain(lambda x: x + 1)(x).result * 2

    explanation = framejit.explain(outer)(torch.ones(2))
    assert explanation.skips == [] and explanation.graph_count == 2


def test_it_prints_where_letters_are_missing(tmp_path):
    program = tmp_path / "größe.py"
    program.write_text(
        "import torch, framejit\n"
        f"def {'größe' * 20}(x):\n    print(len('日本'))\n    return x + 1\n"
        f"explanation = framejit.explain({'größe' * 20})(torch.ones(2))\n"
        "print(explanation)\nexplanation.to_html('ü.html')\n"
    )
    said = [
        subprocess.run([sys.executable, program], cwd=tmp_path, capture_output=True, check=True,
                       env=os.environ | {"PYTHONIOENCODING": encoding}).stdout.decode(encoding)
        for encoding in ("ascii", "utf-8")
    ]  # fmt: skip
    assert r"gr\xf6\xdfe.py:3" in said[0] and "\\u65e5\\u672c" in said[0]
    assert "größe.py:3" in said[1] and "日本" in said[1]
    assert "…" not in said[1], "names are not cut"
    assert "日本" in (tmp_path / "ü.html").read_text(encoding="utf-8")


class Page(html.parser.HTMLParser):
    """The classes of the source lines, the links, and everything that would load something."""

    def __init__(self, text):
        super().__init__()
        self.lines, self.ids, self.links, self.loads, self.open = {}, set(), [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.open.append((tag, attributes))
        self.loads += [attributes[k] for k in ("src", "data", "srcset") if k in attributes]
        if tag in ("link", "script", "iframe"):
            self.loads.append(tag)
        if "href" in attributes:
            self.links.append(attributes["href"])
        if "id" in attributes:
            self.ids.add(attributes["id"])

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "i" and len(self.open) > 1 and data.isdigit():
            self.lines[int(data)] = self.open[-2][1].get("class")

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass


def test_the_page_needs_nothing_and_marks_the_lines(tmp_path, capsys):
    explanation = framejit.explain(explained.program)(torch.ones(3), 3)
    path = tmp_path / "report.html"
    explanation.to_html(path)
    text = path.read_text()
    page = Page(text)
    assert page.loads == [] and "http" not in text and "url(" not in text and "@import" not in text
    assert page.links and all(link[1:] in page.ids for link in page.links)
    assert {n for n, kind in page.lines.items() if kind == "break"} == marked("break")
    assert {n for n, kind in page.lines.items() if kind == "captured"} == marked("captured")
    assert text.count("<svg") == 3
    for part in ("FJ0130", "TENSOR_MATCH", "Time line", "def program"):
        assert part in text


def test_text_of_the_program_cannot_break_the_page():
    def sly(x):
        print("</div><script>alert(1)</script>")
        return x + 1

    text = framejit.explain(sly)(torch.ones(2))._repr_html_()
    assert "<script" not in text and "&lt;script&gt;" in text


def test_the_work_of_drawing_grows_with_the_number_of_nodes():
    def deep(x, rounds):
        for _ in range(rounds):
            x = torch.relu(x) + 1
        return x

    few, many = (framejit.explain(deep)(torch.ones(3), rounds) for rounds in (50, 250))
    assert few._repr_html_().count("<rect") == 102 and many._repr_html_().count("<rect") == 502
    assert calls_made(many._repr_html_) < 6 * calls_made(few._repr_html_)


def test_a_drawing_puts_nodes_below_their_inputs():
    nodes = [
        Node("x", "placeholder", "x", "float32[3]", (), "", 0),
        Node("a", "call_function", "torch.sin", "", (0,), "", 0),
        Node("w", "placeholder", "w", "", (), "", 0),
        Node("b", "call_function", "torch.add", "", (1, 2), "m.py", 4),
        Node("output", "output", "output", "", (3,), "", 0),
    ]
    drawn = picture(nodes)
    assert drawn.arrows == [(0, 1), (1, 3), (2, 3), (3, 4)]
    kinds = [box.kind for box in drawn.boxes]
    assert kinds == ["placeholder", "call", "placeholder", "call", "output"]
    assert drawn.boxes[3].line == ("m.py", 4) and "m.py:4" in drawn.boxes[3].title
    heights = [box.y for box in drawn.boxes]
    assert heights[0] == heights[2] - 56 or heights[2] == heights[1]
    assert heights[0] < heights[1] < heights[3] < heights[4]


def test_boxes_of_a_picture_lead_to_the_lines_of_the_program():
    text = framejit.explain(explained.program)(torch.ones(3), 3)._repr_html_()
    page = Page(text)
    boxes = re.findall(r'<a href="#(\w+)"><g class="call"', text)
    assert boxes and page.ids.issuperset(boxes)


def test_an_empty_report_is_a_report():
    assert str(Explanation()).startswith("0 graphs, 0 graph breaks")
    assert "framejit report" in Explanation()._repr_html_()


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("chrome")
in_browser = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")


def opened(path, folder):
    """The DOM of a page in headless Chromium, and the addresses that it asked the network for."""
    log = folder / "network.json"
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
         "--disable-component-update", "--no-first-run", "--no-pings",
         "--host-resolver-rules=MAP * ~NOTFOUND",
         f"--user-data-dir={folder}", f"--log-net-log={log}", "--dump-dom", path.as_uri()],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    said = [event.get("params", {}) for event in json.loads(log.read_text())["events"]]
    asked = {one["url"] for one in said if one.get("initiator", OWN) != OWN}
    return done.stdout, asked


#: Who asks for what Chromium wants for itself.
OWN = "not an origin"


@in_browser
@pytest.mark.parametrize(
    "name", ["program", *(pytest.param(n, marks=pytest.mark.slow) for n in [*explained.CASES][1:])]
)
def test_a_browser_shows_the_lines_and_asks_no_network(name, tmp_path):
    program, backend, arguments, functions = case(name)
    framejit.explain(program, backend=backend)(*arguments).to_html(tmp_path / "report.html")
    text, asked = opened(tmp_path / "report.html", tmp_path)
    page = Page(text)
    assert asked == set() and page.loads == []
    text = text.replace("<h1>", '<img src="http://127.0.0.1:9/picture"><h1>', 1)
    if name == "program":  # would it be seen?
        (tmp_path / "asks.html").write_text(text)
        assert opened(tmp_path / "asks.html", tmp_path)[1] == {"http://127.0.0.1:9/picture"}
    for kind in ("captured", "break"):
        assert {n for n, mark in page.lines.items() if mark == kind} == marked(kind, functions)


@in_browser
@pytest.mark.slow
def test_a_browser_shows_a_bert_of_five_hundred_nodes(tmp_path):
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        vocab_size=100, hidden_size=32, num_hidden_layers=12, num_attention_heads=2,
        intermediate_size=64,
    )  # fmt: skip
    with torch.no_grad():
        tokens = torch.arange(8).reshape(1, 8)
        explanation = framejit.explain(transformers.BertModel(config).eval())(tokens)
    (entry,) = explanation.graphs
    assert len(entry.nodes) >= 500
    explanation.to_html(tmp_path / "report.html")
    text, _ = opened(tmp_path / "report.html", tmp_path)
    assert text.count("<rect") == len(entry.nodes)
