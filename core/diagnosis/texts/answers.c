/* Texts of findings that are no faults. */
#include "core/diagnosis/texts/texts.h"

FAULT_TEXT(as_believed, "as_believed", "finding", "as configured", "与配置一致", "The configuration gives the tensor.",
           "配置能得出这个张量。", "The tensor is what the configuration gives.", "张量与配置得出的结果一致。");
FAULT_TEXT(identified, "identified", "finding", "identified", "已识别",
           "No configuration was sent; one that gives the tensor was found.",
           "请求中没有配置，但找到了能得出这个张量的配置。",
           "No configuration was sent; the first candidate gives the tensor.",
           "请求中没有配置；第一个候选能得出这个张量。");
/* Far; nearly the belief; nearly something else. */
static const struct pe_text of_unexplained[] = {
    {"No configuration that was tried gives the tensor; `ruled_out` lists the best of each kind.",
     "试过的配置都得不出这个张量；`ruled_out` 列出了每一类中最接近的一个。"},
    {"The tensor is nearly what you believe: the largest error is {nearest.max_error}, at "
     "{worst.output}[{worst.index}]. No mistake that was tried explains it.",
     "张量与你的配置很接近：最大误差为 {nearest.max_error}，在 {worst.output}[{worst.index}]。"
     "试过的错误都解释不了这个误差。"},
    {"Nothing that was tried gives the tensor; the nearest is {nearest.codes}, with a largest error of "
     "{nearest.max_error}, at {worst.output}[{worst.index}].",
     "试过的配置都得不出这个张量；最接近的是 {nearest.codes}，最大误差为 {nearest.max_error}，在 "
     "{worst.output}[{worst.index}]。"},
};
FAULT_TEXTS(unexplained, "unexplained", "finding", "unexplained", "无法解释",
            "No configuration that was tried gives the tensor.", "试过的配置都得不出这个张量。", of_unexplained);
FAULT_TEXT(uninitialised, "uninitialised", "finding", "uninitialised memory", "未初始化的内存",
           "The frequencies look like memory that nobody wrote.", "频率看起来像是从未写入的内存。",
           "The frequencies look like memory that nobody wrote, as after a buffer is created empty and never filled: "
           "`found` has the first pair that cannot be right.",
           "频率看起来像是从未写入的内存，例如创建了空缓冲区却没有填值：`found` 给出了第一个不可能正确的对。");
FAULT_TEXT(undecided, "undecided", "finding", "undecided", "无法区分",
           "Two configurations give the tensor, but differ elsewhere.", "有两种配置都能得出这个张量，但在别处不同。",
           "Candidate {candidate} gives the tensor too; a row at position {position} tells them apart.",
           "候选 {candidate} 也能得出这个张量；用位置 {position} 的一行即可区分两者。");
FAULT_TEXT(
    sides_differ, "sides_differ", "finding", "q and k differ", "q 与 k 不一致",
    "Queries and keys are not rotated alike.", "查询与键的旋转方式不同。",
    "q and k are not rotated alike, so scores no longer depend on the distance of their positions alone; `sides` "
    "says what each of them is.",
    "q 与 k 的旋转方式不同，因此得分不再只取决于两者位置的距离；`sides` 分别说明了两者的情况。");
