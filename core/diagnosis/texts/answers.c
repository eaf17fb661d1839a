/* Texts of findings that are no faults. */
#include "core/diagnosis/texts/texts.h"

FAULT_TEXT(as_believed, "as_believed", "finding", "as configured", "The configuration gives the tensor.",
           "The tensor is what the configuration gives.");
FAULT_TEXT(identified, "identified", "finding", "identified",
           "No configuration was sent; one that gives the tensor was found.",
           "No configuration was sent; the first candidate gives the tensor.");
/* Far; nearly the belief; nearly something else. */
static const char *const of_unexplained[] = {
    "No configuration that was tried gives the tensor; `ruled_out` lists the best of each kind.",
    "The tensor is nearly what you believe: the largest error is {nearest.max_error}, at "
    "{worst.output}[{worst.index}]. No mistake that was tried explains it.",
    "Nothing that was tried gives the tensor; the nearest is {nearest.codes}, with a largest error of "
    "{nearest.max_error}, at {worst.output}[{worst.index}].",
};
FAULT_TEXTS(unexplained, "unexplained", "finding", "unexplained", "No configuration that was tried gives the tensor.",
            of_unexplained);
FAULT_TEXT(uninitialised, "uninitialised", "finding", "uninitialised memory",
           "The frequencies look like memory that nobody wrote.",
           "The frequencies look like memory that nobody wrote, as after a buffer is created empty and never filled: "
           "`found` has the first pair that cannot be right.");
FAULT_TEXT(undecided, "undecided", "finding", "undecided", "Two configurations give the tensor, but differ elsewhere.",
           "Candidate {candidate} gives the tensor too; a row at position {position} tells them apart.");
FAULT_TEXT(
    sides_differ, "sides_differ", "finding", "q and k differ", "Queries and keys are not rotated alike.",
    "q and k are not rotated alike, so scores no longer depend on the distance of their positions alone; `sides` "
    "says what each of them is.");
