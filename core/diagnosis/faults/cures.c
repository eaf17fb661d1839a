/* Cures: the lines of Python that mend what a finding names, where they are few; the rows of faults refer to them.
 *
 * A line names what the code that made the tensor has: position_ids, inv_freq, cos and sin with a column for each pair,
 * and the tensors by their names in the request. It follows the place where the code sets that variable. A
 * placeholder is a value of the finding or of the belief (../search/cure.c), and a line whose placeholders have none is
 * left out: base and width are there where the believed ladder is a plain one, first and end where the believed
 * positions are a run; at and by (whole: an integer) where a relation of positions was measured. A port's softmax_scale
 * multiplies q·k. */
#include "core/diagnosis/diagnosis.h"

#define TABLES PE_EVIDENCE_BIT(TABLES)
#define ROTATED PE_EVIDENCE_BIT(ROTATED)
#define BOTH (TABLES | ROTATED)

#define RUN .torch = "position_ids = torch.arange({first}, {end})", .numpy = "position_ids = np.arange({first}, {end})"

const struct pe_cure pe_cures_positions[] = {{RUN}, {.torch = NULL}};

/* Where the believed positions are no run, of some axes or of all ({at}); shift and factor are those of the relation.
 */
#define REALS_OF(line)                                                                                                 \
    .torch = "position_ids = position_ids.double()\n" line,                                                            \
    .numpy = "position_ids = position_ids.astype(np.float64)\n" line

const struct pe_cure pe_cures_shifted[] = {
    {RUN},
    {.torch = "position_ids{at} -= {whole}", .numpy = "position_ids{at} -= {whole}"},
    {REALS_OF("position_ids{at} -= {by}")},
    {.torch = NULL}};

const struct pe_cure pe_cures_stretched[] = {{RUN}, {REALS_OF("position_ids{at} /= {found}")}, {.torch = NULL}};

const struct pe_cure pe_cures_reversed[] = {{RUN},
                                            {.torch = "position_ids{at} = position_ids{at}.flip(-1)",
                                             .numpy = "position_ids{at} = position_ids{at}[..., ::-1]"},
                                            {.torch = NULL}};

const struct pe_cure pe_cures_ladder[] = {
    {.torch = "inv_freq = 1.0 / ({base} ** (torch.arange(0, {width}, 2, dtype=torch.float32) / {width}))",
     .numpy = "inv_freq = {base} ** (-np.arange(0, {width}, 2) / {width})"},
    {.torch = NULL}};

const struct pe_cure pe_cures_scaling[] = {
    {.torch = "inv_freq = inv_freq / {linear}", .numpy = "inv_freq = inv_freq / {linear}"},
    {.torch = "inv_freq, attention_scaling = ROPE_INIT_FUNCTIONS[config.rope_scaling[\"rope_type\"]](config, device)  "
              "# of transformers.modeling_rope_utils"},
    {.torch = NULL}};

#define ROTATE_HALF                                                                                                    \
    .torch = "a, b = {in}.chunk(2, -1)\n{name} = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)",               \
    .numpy = "a, b = np.split({in}, 2, -1)\n{name} = np.concatenate((a * cos - b * sin, b * cos + a * sin), -1)"
#define ROTATE_NEIGHBOURS                                                                                              \
    .torch = "a, b = {in}[..., ::2], {in}[..., 1::2]\n"                                                                \
             "{name} = torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)",                           \
    .numpy = "a, b = {in}[..., ::2], {in}[..., 1::2]\n"                                                                \
             "{name} = np.stack((a * cos - b * sin, b * cos + a * sin), -1).reshape({in}.shape)"

const struct pe_cure pe_cures_layout[] = {
    {.evidence = ROTATED, .layout = "half", ROTATE_HALF},
    {.evidence = ROTATED, .layout = "interleaved", ROTATE_NEIGHBOURS},
    {.evidence = TABLES,
     .layout = "half",
     .torch = "cos, sin = (torch.cat((x[..., ::2],) * 2, -1) for x in (cos, sin))",
     .numpy = "cos, sin = (np.concatenate((x[..., ::2],) * 2, -1) for x in (cos, sin))"},
    {.evidence = TABLES,
     .layout = "interleaved",
     .torch = "cos, sin = (x[..., : x.shape[-1] // 2].repeat_interleave(2, -1) for x in (cos, sin))",
     .numpy = "cos, sin = (np.repeat(x[..., : x.shape[-1] // 2], 2, -1) for x in (cos, sin))"},
    {.torch = NULL}};

const struct pe_cure pe_cures_rotation[] = {{.evidence = ROTATED, .layout = "half", ROTATE_HALF},
                                            {.evidence = ROTATED, .layout = "interleaved", ROTATE_NEIGHBOURS},
                                            {.torch = NULL}};

/* Of tables it is the positions that are doubled. */
const struct pe_cure pe_cures_twice[] = {
    {.evidence = ROTATED, .layout = "half", ROTATE_HALF},
    {.evidence = ROTATED, .layout = "interleaved", ROTATE_NEIGHBOURS},
    {.evidence = TABLES, RUN},
    {.evidence = TABLES, REALS_OF("position_ids{at} /= {found}")},
    {.evidence = TABLES, .torch = "position_ids = position_ids / 2", .numpy = "position_ids = position_ids / 2"},
    {.torch = NULL}};

const struct pe_cure pe_cures_direction[] = {{.evidence = BOTH, .torch = "sin = -sin", .numpy = "sin = -sin"},
                                             {.torch = NULL}};

const struct pe_cure pe_cures_exchanged[] = {
    {.evidence = BOTH, .torch = "cos, sin = sin, cos", .numpy = "cos, sin = sin, cos"}, {.torch = NULL}};

const struct pe_cure pe_cures_negated[] = {
    {.evidence = TABLES, .torch = "cos, sin = -cos, -sin", .numpy = "cos, sin = -cos, -sin"},
    {.torch = "{name} = -{name}", .numpy = "{name} = -{name}"},
    {.torch = NULL}};

const struct pe_cure pe_cures_factor[] = {{.evidence = BOTH,
                                           .torch = "cos, sin = cos * {times}, sin * {times}",
                                           .numpy = "cos, sin = cos * {times}, sin * {times}"},
                                          {.torch = NULL}};

const struct pe_cure pe_cures_scaled[] = {{.evidence = TABLES,
                                           .torch = "cos, sin = cos / {found}, sin / {found}",
                                           .numpy = "cos, sin = cos / {found}, sin / {found}"},
                                          {.torch = "{name} = {name} / {found}", .numpy = "{name} = {name} / {found}"},
                                          {.torch = NULL}};

const struct pe_cure pe_cures_inverted[] = {{.torch = "{name} = 1.0 / {name}", .numpy = "{name} = 1.0 / {name}"},
                                            {.torch = NULL}};

/* Columns of sines and of cosines. */
const struct pe_cure pe_cures_columns[] = {{.layout = "half",
                                            .torch = "{in} = torch.cat(({in}[..., ::2], {in}[..., 1::2]), -1)",
                                            .numpy = "{in} = np.concatenate(({in}[..., ::2], {in}[..., 1::2]), -1)"},
                                           {.layout = "interleaved",
                                            .torch = "{in} = torch.stack({in}.chunk(2, -1), -1).flatten(-2)",
                                            .numpy = "{in} = np.stack(np.split({in}, 2, -1), -1).reshape({in}.shape)"},
                                           {.torch = NULL}};

const struct pe_cure pe_cures_mask[] = {{.torch = "{name} = {name}.masked_fill({name} <= {found}, -float(\"inf\"))",
                                         .numpy = "{name} = np.where({name} <= {found}, -np.inf, {name})"},
                                        {.torch = NULL}};

const struct pe_cure pe_cures_softmax_scale[] = {
    {.torch = "softmax_scale = {believed}", .numpy = "softmax_scale = {believed}"}, {.torch = NULL}};

const struct pe_cure pe_cures_axes[] = {
    {.torch = "{name} = {name}.permute({order})", .numpy = "{name} = {name}.transpose({order})"}, {.torch = NULL}};

const struct pe_cure pe_cures_transposed[] = {
    {.evidence = TABLES,
     .torch = "cos, sin = cos.transpose(-1, -2), sin.transpose(-1, -2)",
     .numpy = "cos, sin = cos.swapaxes(-1, -2), sin.swapaxes(-1, -2)"},
    {.torch = "{name} = {name}.transpose(-1, -2)", .numpy = "{name} = {name}.swapaxes(-1, -2)"},
    {.torch = NULL}};
