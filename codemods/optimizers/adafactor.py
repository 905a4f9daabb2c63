"""Adafactor (Shazeer and Stern 2018): second moments factored into rows and columns, steps
relative to the parameters.

Legacy: with ρₜ = 1 − (t+1−offset)^−decay, v ← ρₜ·v + (1−ρₜ)·(g² + ε₁), as row and column means
where two dimensions are large; u = g/√v, divided by max(1, rms(u)/threshold); u ← η·max(rms(p),
ε₂)·u; with β₁ an average of u; p ← (1−λ)·p − u.

optax: `adafactor`, the same up to rounding. It fixes ε₂ at 1e-3, so another ε₂ needs the explicit
chain.

Legacy takes the square of a complex gradient, optax the squared modulus. So optimizers of complex
parameters stay.

In bfloat16 both train and round differently, as legacy has second moments in float32 and optax in
the type of the parameters: they come nearer to each other than either to float32.
"""

from __future__ import annotations

from codemods.cst.pieces import Piece, new
from codemods.cst.template import expression
from codemods.optimizers.arguments import Arguments, constant
from codemods.optimizers.base import Converted, LegacyOptimizer, parameters, refuser

SIGNATURE = parameters(
    learning_rate="None",
    factored="True",
    multiply_by_parameter_scale="True",
    beta1="None",
    decay_rate="0.8",
    step_offset="0",
    clipping_threshold="1.0",
    weight_decay_rate="None",
    min_dim_size_to_factor="128",
    epsilon1="1e-30",
    epsilon2="1e-3",
    dtype_momentum="jnp.float32",
)
NAMES = {"beta1": "momentum", "step_offset": "decay_offset", "epsilon1": "eps"}
MOMENTS = {
    "factored": "factored",
    "decay_rate": "decay_rate",
    "step_offset": "step_offset",
    "min_dim_size_to_factor": "min_dim_size_to_factor",
    "epsilon1": "epsilon",
}
OPTIONAL = ("clipping_threshold", "beta1", "weight_decay_rate")


def convert(arguments: Arguments) -> Converted:
    arguments.drop_if("epsilon2", 1e-3)
    # `optax.adafactor` fixes it at this value
    if arguments.may_be_alias and "epsilon2" not in arguments:
        return Converted(arguments.alias("optax.adafactor", NAMES))
    links = (
        arguments.link("optax.scale_by_factored_rms", *arguments.take(MOMENTS)),
        _unless_none(
            arguments, "clipping_threshold", "optax.clip_by_block_rms", default="1.0"
        ),
        arguments.descent(flip_sign="False"),
        _scale(arguments),
        _unless_none(arguments, "beta1", "optax.ema", *_average(arguments)),
        _unless_none(arguments, "weight_decay_rate", "optax.add_decayed_weights"),
        arguments.link("optax.scale", new(None, "-1")),
    )
    return Converted(arguments.chain(*links))


def _unless_none(
    arguments: Arguments,
    name: str,
    function: str,
    *extra: Piece,
    default: str = "None",
) -> Piece | None:
    """The link for an argument that may be None, at run time if only that shows its value."""
    value = arguments.value(name, default)
    if constant(value) is None:
        return None
    given = arguments.take({name: None}) or [new(None, default)]
    link = arguments.link(function, *given, *extra)
    if constant(value) is not ...:
        return link
    # Adafactor(beta1=beta1), which may be None
    choice = "{link} if {value} is not None else optax.identity()"
    return link.valued(expression(choice, link=link.value, value=value))


def _scale(arguments: Arguments) -> Piece | None:
    """The link that makes steps relative to the parameters, if they are."""
    scaled = arguments.value("multiply_by_parameter_scale", "True")
    known = constant(scaled)
    if not known:
        return None
    link = arguments.link(
        "optax.scale_by_param_block_rms", *arguments.take({"epsilon2": None})
    )
    if known is not ...:
        return link
    # Adafactor(multiply_by_parameter_scale=scaled)
    choice = "{link} if {scaled} else optax.identity()"
    return link.valued(expression(choice, link=link.value, scaled=scaled))


def _average(arguments: Arguments) -> list[Piece]:
    """The arguments of the average of the updates beside its decay; by default it is in float32."""
    if constant(arguments.value("beta1")) is None:
        return []
    names = {"dtype_momentum": "accumulator_dtype"}
    return [
        new("debias", "False"),
        *arguments.take(names, accumulator_dtype="'float32'"),
    ]


INTERFACE = '''class Adafactor(OptimizerDef):
    """Adafactor (Shazeer and Stern 2018), as a rule for each parameter."""

{init}
        self.dtype_momentum = jax.dtypes.canonicalize_dtype(dtype_momentum)

    def _factored(self, shape):
        """The two largest axes, if the second moments are factored."""
        axes = sorted(range(len(shape)), key=lambda axis: shape[axis])[-2:]
        large = (
            len(axes) == 2
            and shape[axes[0]] >= self.hyper_params.min_dim_size_to_factor
        )
        return axes if self.hyper_params.factored and large else None

    def init_param_state(self, param):
        kept = {name: jnp.zeros((1,)) for name in ("v_row", "v_col", "v", "m")}
        axes = self._factored(param.shape)
        if axes is None:
            kept["v"] = jnp.zeros(param.shape, jnp.float32)
        else:
            for name, axis in zip(("v_col", "v_row"), axes):
                rest = [size for index, size in enumerate(param.shape) if index != axis]
                kept[name] = jnp.zeros(rest, jnp.float32)
        if self.hyper_params.beta1 is not None:
            kept["m"] = jnp.zeros(param.shape, self.dtype_momentum)
        return AdafactorParamState(**kept)

    def apply_param_gradient(self, step, hyper_params, param, state, grad):
        hp = hyper_params
        grad = grad.astype(jnp.float32)
        kept = {name: jnp.zeros((1,)) for name in ("v_row", "v_col", "v", "m")}
        count = jnp.array(step - hp.step_offset, jnp.float32) + 1.0
        decay = 1.0 - count ** (-hp.decay_rate)
        scale = hp.learning_rate
        if self.hyper_params.multiply_by_parameter_scale:
            scale *= jnp.maximum(jnp.sqrt(jnp.mean(param * param)), hp.epsilon2)

        squares = grad * grad + hp.epsilon1
        axes = self._factored(param.shape)
        if axes is None:
            kept["v"] = decay * state.v + (1.0 - decay) * squares
            update = grad * kept["v"] ** -0.5
        else:
            second, first = axes
            row = decay * state.v_row + (1.0 - decay) * jnp.mean(squares, axis=first)
            col = decay * state.v_col + (1.0 - decay) * jnp.mean(squares, axis=second)
            mean = jnp.mean(
                row, axis=second - 1 if second > first else second, keepdims=True
            )
            by_row = jnp.expand_dims((row / mean) ** -0.5, axis=first)
            update = grad * by_row * jnp.expand_dims(col**-0.5, axis=second)
            kept["v_row"], kept["v_col"] = row, col
        if hp.clipping_threshold is not None:
            update /= jnp.maximum(
                1.0, jnp.sqrt(jnp.mean(update * update)) / hp.clipping_threshold
            )

        update = scale * update
        if hp.beta1 is not None:
            update = hp.beta1 * state.m + (1.0 - hp.beta1) * update
            kept["m"] = update.astype(self.dtype_momentum)
        decayed = (
            param
            if hp.weight_decay_rate is None
            else (1.0 - hp.weight_decay_rate) * param
        )
        return (decayed - update).astype(param.dtype), AdafactorParamState(**kept)
'''
STATE = {"v_row": "v_row", "v_col": "v_col", "v": "v", "m": "ema"}
OPTIMIZER = LegacyOptimizer(
    "Adafactor",
    SIGNATURE,
    STATE,
    convert,
    module="adafactor",
    kept_in=("EmaState", "FactoredState"),
    counts=True,
    of_reals=True,
    refuses=refuser(SIGNATURE, OPTIONAL, OPTIONAL),
    interface=INTERFACE,
    hyper_fields={"dtype_momentum": ""},
    samples={
        "decay_rate": 0.79,
        "clipping_threshold": 0.9,
        "min_dim_size_to_factor": 5,
        "step_offset": 3,
        "weight_decay_rate": 0.017,
        "epsilon1": 1e-7,
        "epsilon2": 2e-3,
    },
    sizes=("min_dim_size_to_factor",),
    keeps_types=True,
)
