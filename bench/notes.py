"""Why a row of the benchmark tables misses its target: what a profile shows and what was tried.

The pages print a note below its table as long as a row that it speaks of misses. A note belongs to
the rows whose name its pattern matches as a whole.
"""

from __future__ import annotations

import re

NOTES: dict[str, str] = {
    r"a\.item\(\)": "half of it is Python's call of a method; what is left was not profiled.",
    r"cat\(\[a, b\]\)": "0.2 to 0.3 in other runs and at one thread; this one was disturbed.",
    # --- arithmetic -----------------------------------------------------------------------------
    r"exp|exp, 1M doubles|tanh.*|erf, .*|gelu.*|(log_)?softmax.*|logsumexp.*|cross_entropy.*": (
        "bound by arithmetic, not by memory: an exponential is 16 instructions of 512 bits a "
        "vector, 0.7 ms for 4M floats. Streaming the result past the cache changed nothing. "
        "logsumexp and cross_entropy store no exponential: of 0.36 ns an element in the cache 0.07 "
        "find the maximum, the rest is 10 multiply-adds of 512 bits a vector and rows' ends. "
        "Leaving out the test for extreme arguments gained 8 %."
    ),
    r"erfc.*|erfinv.*|lgamma.*|digamma.*": (
        "bound by arithmetic: long polynomials, in double for floats, keep the bounds of the "
        "accuracy page."
    ),
    r"x \*\* 2\.5.*": (
        "bound by arithmetic, 90 (floats) and 112 (doubles) instructions a vector, for at most 0.7 "
        "and 1.2 ulp: logarithm and product in two parts, tables in registers; 0.80 to 0.87 of "
        "NumPy's time. Floats in double with the same tables took 1.23 ns an element against 0.85."
    ),
    r"embedding_bag.*": (
        "waits for a row a bag. Gathers of AVX-512 were slower; with two threads one is late where "
        "it slept."
    ),
    r"x (//|%) .*": (
        "bound by arithmetic where the numbers are in the cache: converted, multiplied, rounded, "
        "subtracted and converted back (divide.cc)."
    ),
    r"bincount.*|histc.*|topk.*": (
        "bound by work on each element that waits for the one before (counting, comparing), not by "
        "memory. Tried for topk: passing over 32 elements at a time that come too late, which it "
        "does now."
    ),
    r"dropout.*": (
        "bound by the random numbers, two words of Mersenne's an element as in PyTorch, which one "
        "thread draws; their share was not profiled, nor tempering by vectors of 512 bits tried."
    ),
    r"interpolate.*": (
        "bilinear 1.6 to 2.6 ms (4.2 to 6.9 before), with its gradient 5.2 to 7.0, on one thread: "
        "47 % of that are sums of rows, 20 % permutations along rows; the rest was not profiled. "
        "Streaming the result past the cache was not tried."
    ),
    # --- memory in another order ----------------------------------------------------------------
    r"x\.t\(\).*|permute.*|x \+ y\.t\(\)|x\[::2\] \+ y\.t\(\).*": (
        "each line of the source is another page, so that nothing is fetched ahead, and rows 8 KB "
        "apart share few sets of the caches. Tried: tiles of 16 to 512 rows by 16 to 128 columns, "
        "padded buffers, fetching the next tile ahead; squares of 16 x 16 in registers helped."
    ),
    r"stack, last dim|repeat_interleave.*": (
        "writes vectors that interleave the inputs, past the cache: 40 GB/s in all for stack, and "
        "for repeat_interleave 27 GB/s of stores, which two threads do not exceed; a copy reads "
        "half of what it moves, this writes four fifths."
    ),
    r"x\[::2\]\.clone\(\)|x\[:, ::2\].*|roll.*|index_select\(0\)|embedding, .*": (
        "reads rows, or parts of them, that memory cannot fetch far ahead."
    ),
    r"tril": (
        "zeros and copies of parts of rows: memmove took three times the samples of memset. Rows "
        "are streamed, which took a fifth off; the yardstick's 16 MB stay in the cache."
    ),
    r"gather\(.\).*|scatter_.*|index_put_.*|index_add_.*": (
        "waits for lines in any order; lines are fetched while the one before is worked on. "
        "Indices are checked 256 at a time in the cache (before, in a pass of their own: scatter_ "
        "gained 8 to 17 %, scatter_add_ 1 to 3 %, whose additions wait where a place was just "
        "written). index_add_ gives each thread the lines of a range of places, found without "
        "sorting (13 % less); fetching lines ahead was slower."
    ),
    r"grid_sample.*": (
        "waits for two lines of the cache a point and channel; gathers of AVX-512 and geometry "
        "without vectors were slower."
    ),
    # --- reductions -----------------------------------------------------------------------------
    r"cumsum\(.\)|argmax\(0\)": (
        "sums are in double: four shuffles, five additions and two conversions for 8 floats; along "
        "dimension 0 both wait for pieces of 1 to 4 KB of each row."
    ),
    r"max|max\(1\)|argmax\(1\)|var\(1\)|norm|mean\(1\)": (
        "reads memory, then the block in the cache once more (for the place or the mean). In "
        "var(1) the sum, which waits for memory, takes three times the samples of the squares."
    ),
    r"sum.*": (
        "sums of floats are taken in parts, and in double from there, which does not depend on the "
        "number of threads: some more instructions than PyTorch's. With two threads on a quiet "
        "machine sum(1) took 145 us (PyTorch 151), sum(0) of 1000 x 1000 44.6 (45.0), sum of 1M "
        "30 (36)."
    ),
    r"count_nonzero": (
        "compares 16 floats at a time and adds up masks: 0.21 ms on one thread in a quiet run "
        "(0.42 before), which is the rate of a copy there."
    ),
    r"any": "takes 30 us on two threads, of which beginning and ending a region are 1 to 2.",
    # --- layers ---------------------------------------------------------------------------------
    r"batch_norm.*|layer_norm.*": (
        "goes over a row or channel several times (statistics, then the result; three passes "
        "backward), from the cache after the first; the table counts one."
    ),
    r"max_pool2d.*": (
        "forward 1.2 to 2.0 ms (1.7 to 2.5 before), with the gradient 4.6 to 7.0 (8.2 to 9.7), on "
        "one thread. A step's profile before the last change: 22 % lists of a row's elements "
        "(since computed once a plane), 18 % rows into phases, 13 % comparing, 13 % adding "
        "gradients at the bytes kept, 7 % zeros. Adding by vectors was not tried."
    ),
    r"depthwise.*": (
        "forward, gradients of x and w take 0.53, 0.53 and 0.56 ms on one thread, and as much on "
        "two beside other work (0.87, 0.95 and 0.90 before, in the same runs). Images are read "
        "where they are, by masked vectors, instead of being copied into strips; rows of 14 leave "
        "two lanes of 16 empty and two rows of 16. Why a second thread gains little was not "
        "profiled."
    ),
    r"AdamW.*": (
        "reads four tensors and writes three in one pass by vectors, seven streams of memory at "
        "once; fetching them ahead was not tried."
    ),
    # --- products -------------------------------------------------------------------------------
    r"(x @ y|bmm|linear) in bf16.*": (
        "both frameworks call the same kernels of oneDNN, and their times differ by 3 % between "
        "runs: 0.95 to 1.02 of PyTorch's when interleaved. Tried for x @ y: tiles of 128, 256 and "
        "512 rows by 512 and 1024 columns and of 1024 rows by 128 to 512; for bmm 2, 4 and 8 "
        "products a call. Laying out B once for all tiles was not tried."
    ),
    r"3x3, .*": (
        "Winograd's transforms and the packing of its filters come with each chunk of tiles; "
        "packing them once gained 4 % on 28 x 28 images and nothing elsewhere. On a quiet machine "
        "two threads gain 1.85 (64 channels, forward: 6.9 and 3.7 ms); a run beside other work "
        "gains less. Tried: chunks of 128 tiles as tasks that never wait for another thread (7 % "
        "faster on 112 x 112, within 3 % elsewhere, 4 to 8 % slower on one thread here)."
    ),
    r"LSTM, .*": (
        "of a layer's forward on two threads half is the product with the inputs, the other half "
        "24 steps that wait for each other: the cells take 9 %, packing 8 %, waiting 4 %. On a "
        "quiet machine two threads take 10.5 and 18.3 ms, PyTorch 10.6 and 19.7."
    ),
    r"causal attention over full.*": (
        "0.53 to 0.58 in quiet runs. Vectors of 16 queries leave (1 + 16 / tokens) / 2 of the "
        "products; packing queries and writing the result, 4 % of the causal time now that lines "
        "are fetched ahead (12 % before), are the same in both."
    ),
    r"argsort.*": (
        "four passes of 10 bits at 3.4 ns an element; digits of 8 bits and buffers that combine "
        "writes were slower."
    ),
    # --- both threads ---------------------------------------------------------------------------
    r"copy, .*|zeros.*|arange.*|x\.add_\(1\)": (
        "bound by memory. With two threads half of the runs had both on one core (4 MB: 122 us, "
        "the others 55) until workers moved away by themselves; on a quiet machine copies of 1, 4 "
        "and 8 MB take 17, 55 and 127 us (PyTorch 18, 66 and 169), x.add_(1) 150 to 180 (180 to "
        "200), arange 204 (276)."
    ),
    r"x \+ (1.*|row|column)|x > 0|relu.*|clamp.*|add\(.*|where|masked_fill|float to.*": (
        "0.8 to 1 in quiet runs: results are stored past the cache, and what other work takes of "
        "main memory changed by half from minute to minute."
    ),
    r"cat, .*|x\.flip.*": "as copies of such size, and as dependent on other work.",
}


def note(name: str) -> str:
    """What is known about the row `name`, or that nothing is."""
    found = [text for pattern, text in NOTES.items() if re.fullmatch(pattern, name)]
    return " ".join(found) or "not explained yet."


def below(missed: list[str]) -> str:
    """A list of notes for the rows that miss, each note once."""
    rows: dict[str, list[str]] = {}
    for name in dict.fromkeys(missed):
        rows.setdefault(note(name), []).append(name)
    if not rows:
        return ""
    lines = ["", "Rows that miss their target, and why:", ""]
    return (
        "\n".join(lines + [f"- {'; '.join(names)}: {text}" for text, names in rows.items()]) + "\n"
    )
