"""What is shown, by the attributes that it promises, in a view or in a figure of a story; every picture against separate requests."""
import numpy as np
from selenium.webdriver.common.action_chains import ActionChains

from browser import PUT, keys_of, until
from lines import Hands, Lines, Path, column, vectors
from probes import HEATS, Heat, array, ask

REAL = {"sinusoidal", "rope", "fourier"}  # have values at real positions
PATHS = {"attention": "/attention"}
NUMPY = {"f32": np.float32, "f64": np.float64}
AXES = {1: ("one",), 2: ("height", "width"), 3: ("temporal", "height", "width"), 4: ("temporal", "height", "width", "l")}


def output_of(config, keys):
    """The output that a view of columns draws."""
    return keys.get("out") or ("cos" if ask_scheme(config) in ("rope", "xpos") else "encoding")


def ask_scheme(config):
    return config.get("scheme", "rope")  # presets of these tests rotate


def without_positions(page, config):
    """The same with the scheme none: what the scheme's own answer says of widths, heads, scale and seed."""
    resolved = ask(page, "/attention", **config, data=False)["config"]
    kept = ("dim", "num_heads", "head_dim", "seed", "causal", "kernel", *(["softmax_scale"] if resolved.get("kernel") != "linear" else []))
    return {"scheme": "none", "tokens": config["tokens"], **{name: resolved[name] for name in kept if name in resolved}}


def similarity(page, config, keys):
    more = {key: keys[key] for key in ("pairing",) if key in keys}
    answer = ask(page, "/analyze", **{**config, **more, "metrics": ["similarity"], "outputs": ["similarity", "gram"], "digits": 17})
    return [np.array(answer["tensors"][f"{name}.0"]["data"], float) for name in ("similarity", "gram")]


def cells_of(page, keys, config, heat, dtype):
    """The values of the drawn window, asked for by this test."""
    if heat.output == "shift_matrix.0":
        answer = ask(page, "/analyze", **{**config, "k": [config["k"]]}, metrics=["shift"], outputs=["shift_matrix"], digits=17)
        return np.array(answer["tensors"]["shift_matrix.0"]["data"], NUMPY[dtype])
    if heat.output.startswith("gram"):
        rows, cols = heat.window((config["len"],) * 2)
        return similarity(page, config, keys)[1][slice(*rows), slice(*cols)].astype(NUMPY[dtype])
    path = PATHS.get(keys["view"], "/encode")
    shape = ask(page, path, **{**config, "outputs": [heat.output], "data": False})["tensors"][heat.output]["shape"]
    form = {"slice": heat.window([1, *shape] if len(shape) == 1 else shape)}
    if heat.row_step * heat.col_step > 1:
        form["reduce"] = heat.reduce
    return array(page, config, heat.output, path, dtype, **form)


def lines_of(page, keys, config, slot, legend):
    """{series: [(x, y)]} that this figure should have, or that are enough to know it by."""
    view = keys["view"]
    if view == "curves":
        found = {}
        for series in legend:
            col = int(series.split(":")[1])
            found[series] = column(page, config, output_of(config, keys), col)
            if "len" in config and config["len"] <= 64 and config.get("scheme") in REAL:
                last = found[series][-1][0]  # goes along, as some schemes read how long their sequence is
                between = np.arange(found[series][0][0], last, 1 / 8)
                found[series] += column(page, config, output_of(config, keys), col, [*between, last])
        return found
    if view == "distance":
        return {f"{slot}:similarity": list(enumerate(similarity(page, config, keys)[0]))[1:]}
    if view == "scaling":
        answer = ask(page, "/analyze", **{"len": 1, **config, "metrics": ["wavelengths"], "digits": 17})
        rule = answer["configs"][0].get("scaling", {}).get("type", "default")
        return {f"{slot}:{rule}": list(enumerate(map(float, answer["tensors"]["wavelength.0"]["data"])))}
    if view == "properties":
        answer = ask(page, "/analyze", **{**without_width(config), "metrics": ["step"], "outputs": ["step"]})
        return {f"{slot}:step": list(enumerate(map(float, answer["tensors"]["step.0"]["data"])))}
    if view == "extrapolate":
        train = int(keys["train"])
        lengths = [train, 2 * train, 4 * train]
        shares = [ask(page, "/analyze", **{**config, "metrics": ["extrapolation"], "outputs": [], "train_len": train, "eval_len": length}) for length in lengths]
        return {list(legend)[0]: [(length, one["results"][0]["extrapolation"]["value"]) for length, one in zip(lengths, shares)]}
    if view == "multimodal":
        ids = ask(page, "/encode", **config, outputs=["positions"])["tensors"]["positions"]["data"]
        return {f"{slot}:{axis}": list(enumerate(row)) for axis, row in zip(AXES[len(ids)], ids)}
    if view == "bias" and config["scheme"] == "alibi" and "len" in config:  # lines of others cross each other
        bias = array(page, config, "bias")
        row = bias.shape[1] // 2
        values = {series: bias[int(series.split(":")[1]), row] for series in legend}
        return {series: [(k - row, float(value)) for k, value in enumerate(row_)] for series, row_ in values.items()}
    return {}


def without_width(config):
    """`dim`, which the page leaves out for what has none."""
    return {key: value for key, value in config.items() if key != "dim" or config.get("scheme") != "rope"}


def metric(page, config, name, **more):
    """One metric of /analyze."""
    config = without_width(config)
    has_sequence = {"len", "lens", "positions", "grid", "tokens"} & config.keys()
    request = {**({} if has_sequence else {"len": 1}), **config, **more, "metrics": [name], "outputs": [], "digits": 17}
    return ask(page, "/analyze", **request)["results"][0][name]


def numbers_of(page, keys, config):
    """{data-what: its number} of a caption, by requests of this test's own."""
    view, cursor = keys["view"], [int(part) for part in keys.get("cur", "0,0").split(",")]
    if view == "attention" and "terms" not in keys.get("out", ""):
        tokens = config.get("tokens", [])
        pairs = [(i, j) for j, token in enumerate(tokens) for i in range(j) if tokens[i] == token]
        output = pairs and array(page, config, "output", "/attention")
        return {"difference": max(np.abs(output[:, i] - output[:, j]).max() for i, j in pairs)} if pairs else {}
    if view == "rotate":
        turned, _ = vectors(page, config, keys["m"], keys["n"])
        q, k = turned["q"], turned["k"]
        return {"product": q @ k, "q-squared": q @ q, "k-squared": k @ k}
    if view == "distance":
        found = metric(page, config, "similarity", **({"pairing": keys["pairing"]} if "pairing" in keys else {}))
        values, _ = similarity(page, config, keys)
        return {"spread": found["value"], "minimum": found["minimum"]["value"], "similarity": values[abs(cursor[0] - cursor[1])]}
    if view == "curves" and "cur" in keys and "cols" in keys and "len" in config:
        return {"value": dict(column(page, config, output_of(config, keys), cursor[1]))[config.get("offset", 0) + cursor[0]]}
    if view == "multimodal":
        answer = ask(page, "/encode", **config, outputs=["positions"])
        tensors = answer["tensors"]
        decodes = "spatial_merge_size" in answer["config"] or not {"grid", "grid_coords", "segments"} & config.keys()  # an image generator does not
        delta = {"rope_delta": ask(page, "/encode", **config, outputs=["rope_delta"])["tensors"]["rope_delta"]["data"]} if decodes else {}
        return {**delta, **{axis: row[cursor[1]] for axis, row in zip(AXES[len(tensors["positions"]["data"])], tensors["positions"]["data"])}}
    if view == "trajectory":
        step = metric(page, config, "step")
        return {"mean": step["mean"], "step": step["value"]}
    if view == "extrapolate":
        return {"value": metric(page, config, "extrapolation", **{f"{name}_len": int(keys[name]) for name in ("train", "eval") if name in keys})["value"]}
    if view == "scaling":
        found = metric(page, config, "wavelengths", **({"train_len": int(keys["train"])} if "train" in keys else {}))
        return {"longest": found["longest"], "train_len": found["train_len"]}
    if view == "bias" and config["scheme"] == "alibi":
        first = int(keys.get("at", "0")) // 16 * 16
        return {"slopes": array(page, config, "slopes")[first:first + 16]}
    return {}


class Shown:
    """Figures below a selector."""

    MARKS = 0  # that hide values of a line

    def __init__(self, page, at="main"):
        self.page, self.at = page, at

    def address(self):
        return self.page.address()

    def config(self, slot="a"):
        return self.address()[slot]

    def all(self, selector, what="e.textContent"):
        """This of every element e that matches."""
        return self.page.read(f"return [...document.querySelectorAll(arguments[0])].map((e) => {what})", f"{self.at} {selector}")

    def snapshot(self, row):
        """The numbers that a row compares with those of before."""
        whats = {(slot, what) for kind in ("same", "differs") for slot, names in row["expect"].get(kind, {}).items() for what in names}
        return {(slot, what): self.numbers(what, slot) for slot, what in whats}

    def states(self, slot=None):
        return self.all("figure[data-figure]" + (f'[data-config="{slot}"]' if slot else ""), "e.dataset.state")

    def numbers(self, what, slot="a"):
        """Those of the caption; if it has none, all."""
        found = self.all(f'[data-config="{slot}"] data[data-what="{what}"]', f"[Number(e.value), e.closest('[data-config={slot}] figcaption') !== null]")
        return [value for value, is_in in found if is_in] or [value for value, _ in found]

    def refusal(self, slot="a"):
        return " ".join(self.all(f'figure[data-config="{slot}"] [role=alert]'))

    def readout(self):
        """{slot: (row, col, value)}"""
        cells = self.all("[data-readout] output", "[e.dataset.config, Number(e.dataset.row), Number(e.dataset.col), Number(e.dataset.value)]")
        return {slot: tuple(cell) for slot, *cell in cells}

    def heats(self, slot="a"):
        return [Heat(self.page, slot, found=found) for found in self.page.run(HEATS, f"{self.at} figure[data-figure]", slot)]

    def heat(self, slot="a", nth=0):
        return Heat(self.page, slot, nth, f"{self.at} figure[data-figure]")

    def has(self, slot):
        """Which of these pictures are there, and drawn?"""
        drawn = "[['lines', 'x0'], ['hands', 'm'], ['path', 'cols']].filter(([kind, what]) => kind in e.dataset && what in e.dataset).map(([kind]) => kind)"
        return sum(self.all(f'figure[data-figure][data-config="{slot}"] canvas', drawn), [])

    def slots(self):
        return [slot for slot, state in self.all("figure[data-figure]", "[e.dataset.config, e.dataset.state]") if state == "ready"]

    def check_drawn(self, slots=None):
        """Each picture of these slots, or of all that are ready, has at its pixels what the requests of its address give."""
        keys = self.address()
        for slot in dict.fromkeys(slots or self.slots()):
            if slot == "b-a":
                self.check_difference(keys)
                continue
            if slot not in keys and slot != "none":
                continue
            config = keys[slot] if slot in keys else without_positions(self.page, keys["a"])
            for heat in self.heats(slot):
                shown, exact = (cells_of(self.page, keys, config, heat, dtype) for dtype in ("f32", "f64"))
                heat.check(*(values.reshape(*values.shape[-2:-1] or (1,), -1) for values in (shown, exact)))
            keys = self.check_lines(keys, config, slot)
            for what, wanted in numbers_of(self.page, keys, config).items():
                found = self.numbers(what, slot)[:np.size(wanted)]
                assert found == [] or np.allclose(found, wanted, rtol=1e-6, atol=1e-9), (slot, what, found, wanted)
            if keys["view"] == "properties":
                wishes = metric(self.page, config, "properties")["wishes"]
                shown = self.all(f'figure[data-config="{slot}"] [data-wish]', "[e.dataset.wish, e.dataset.holds]")
                assert shown == [[name, str(one["holds"]).lower()] for name, one in wishes.items()]

    def check_lines(self, keys, config, slot):
        has = self.has(slot)
        if "lines" in has:
            lines = Lines(self.page, slot, self.at)
            marks = max(self.MARKS, keys["view"] == "scaling")  # of the pair where a length ends
            lines.check(lines_of(self.page, keys, config, slot, lines.legend), marks)
        if "hands" in has:
            hands = Hands(self.page, slot, self.at)
            assert hands.positions == {name: float(keys.get(name, hands.positions[name])) for name in "mn"}
            hands.check(*vectors(self.page, config, hands.positions["m"], hands.positions["n"]))
            keys = {**keys, **hands.positions}
        if "path" in has:
            path = Path(self.page, slot, self.at)
            path.check(array(self.page, config, output_of(config, keys))[:, path.cols])
        return keys

    def check_difference(self, keys):
        """b minus a, in doubles, of what both have."""
        a, b = keys["a"], keys["b"]
        for heat in self.heats("b-a"):
            one, other = (cells_of(self.page, keys, config, heat, "f64") for config in (a, b))
            rows, cols = (min(sizes) for sizes in zip(one.shape, other.shape))
            heat.check(other[:rows, :cols] - one[:rows, :cols])
            assert heat.min == -heat.max < 0
        if "lines" in self.has("b-a"):
            lines = Lines(self.page, "b-a", self.at)
            series = {name.replace("b-a:", "a:"): name for name in lines.legend}
            one, other = (list(lines_of(self.page, keys, config, "a", series).values()) for config in (a, b))
            differences = [[(x, v - u) for (x, u), (_, v) in zip(*pair)] for pair in zip(one, other)]
            lines.check(dict(zip(lines.legend, differences)))


# Scrolls to a figure, above which others take their room meanwhile, until it has pictures.
NEAR = """const [at] = arguments;
document.querySelector(at).scrollIntoView();
return document.querySelector(`${at} figure[data-figure]`) && (document.querySelector('canvas:hover') ? 'under the pointer' : 'near');"""


class Figure(Shown):
    """A figure of the story that the page shows, scrolled to and drawn."""

    MARKS = 2

    def __init__(self, page, name, states=("ready",)):
        super().__init__(page, f"#fig-{name}")
        if until(lambda: page.read(NEAR, self.at), what=f"figure {name}") == "under the pointer":  # which reads out what is there
            away = ActionChains(page.driver)
            away.w3c_actions.pointer_action.move_to_location(0, 0)
            away.perform()
        page.settle()
        assert states is None or set(found := self.states()) == set(states), (name, found)

    def link(self):
        return self.page.attribute(f"{self.at} a[data-action=open]", "href")

    def address(self):
        return keys_of(self.link())

    def slide(self, field, value, event="input"):
        self.page.run(PUT, f'{self.at} :is(input, select, textarea)[data-field="{field}"]', value, event)
        self.page.settle()
        return self

    def pick(self, field, value):
        return self.press(f'[data-field="{field}"] [data-value="{value}"]')

    def press(self, selector):
        self.page.do(f"{self.at} {selector}")
        return self

    def is_untouched(self):
        return self.all("[data-action=reset]", "e.disabled") == [True]

    def reset(self):
        """As the story shows it; it was not so before."""
        before = self.link()
        assert not self.is_untouched()
        self.press("[data-action=reset]")
        assert self.is_untouched() and self.link() != before
        return self
