/* Every scheme, one line each, in the order of the catalogue: the only line two schemes share. */
SCHEME(none)
SCHEME(sinusoidal)
SCHEME(fourier)
SCHEME(learned)
SCHEME(rope)
SCHEME(xpos)
SCHEME(alibi)
