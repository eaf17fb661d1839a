"""/analyze in NumPy and float64, written from the definitions of its metrics by another hand than the C: analyze(request's fields) has the
names of the wire, but no sentences."""
import truth.analysis_lengths as lengths
import truth.analysis_plans as plans
import truth.analysis_rows as rows
import truth.analysis_waves as waves

ON_REQUEST = ("shift_matrix", "gram")
NAMED_ONLY = ("independence",)


def has_rows(plan):
    return plan.family != "relative"


def is_vector_run(plan):
    return plan.family in ("absolute", "rotary") and plan.is_run


METRICS = {  # name: (function, whether it applies to a plan), in the order of the answer
    "unique": (rows.unique, has_rows),
    "shift": (rows.shift, is_vector_run),
    "independence": (rows.independence, has_rows),
    "bounds": (rows.bounds, has_rows),
    "step": (rows.step, has_rows),
    "norms": (waves.norms, lambda plan: plan.family == "rotary"),
    "similarity": (rows.similarity, is_vector_run),
    "wavelengths": (waves.wavelengths, lambda plan: plan.is_ladder),
    "decay": (waves.decay, lambda plan: plan.scheme in ("rope", "sinusoidal") and plan.is_run),
    "precision": (waves.precision, lambda plan: plan.is_ladder),
    "collisions": (rows.collisions, has_rows),
    "receptive": (lengths.receptive, lambda plan: plan.family == "bias"),
    "extrapolation": (lengths.extrapolation, lambda plan: True),
    "properties": (lengths.properties, lambda plan: has_rows(plan) and (plan.axes == 1 or lengths.is_grid(plan))),
    "difference": (lengths.difference, lambda plan: True),
}


def analyze(configs, metrics=None, **ask):
    """One configuration with its sequence, or a list of them, complete."""
    configs = [configs] if isinstance(configs, dict) else configs
    made = [plans.Plan(config) for config in configs]
    results, tensors = [], {}
    for i, plan in enumerate(made):
        results.append({})
        for name in [m for m in METRICS if m not in NAMED_ONLY] if metrics is None else [m for m in METRICS if m in metrics]:
            function, applies = METRICS[name]
            if name == "difference":
                if i == 0:
                    continue
                function = lambda plan, ask: lengths.difference(plan, ask, made[0])
            if applies(plan):
                results[-1][name], found = function(plan, ask)
                tensors.update({f"{tensor}.{i}": values for tensor, values in found.items()})
    return {"results": results, "tensors": tensors}
