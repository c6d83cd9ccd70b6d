"""Why a row of the benchmark tables misses its target: what a profile shows and what was tried.

The pages print a note below its table as long as a row that it speaks of misses. A note belongs to
the rows whose name its pattern matches as a whole.
"""

from __future__ import annotations

import re

NOTES: dict[str, str] = {
    r"a\.item\(\)": (
        "45 ns by timeit; of the samples of a loop 31 % are Python's evaluation, 12 % finding the "
        "method, 20 % making and freeing objects, 22 % the method itself. Nothing was tried: "
        "PyTorch's own time for this row varies between 205 and 354 ns."
    ),
    r"cat\(\[a, b\]\)": "0.2 to 0.3 in other runs and at one thread; this one was disturbed.",
    # --- models (the notes on performance tell more) ---------------------------------------------
    r"gnmt": (
        "1.15 to 1.33 on one thread, 1.15 to 1.52 on two, in runs of several days (713 to 810 ms a "
        "step on one, PyTorch 870 to 985). "
        "Products take 79 % of a step, at the peak's rate; Adam, 4 %, is bound by memory; packing "
        "takes 8 %, the cells 4 %. Tried: packing the recurrent weight once a call, cells where "
        "their sums are, units as tasks; without gain other tiles for 16 rows, packing weights "
        "where they are used, fetching ahead what cells read and write."
    ),
    r"vit_tiny": (
        "1.15 and 1.32 in two runs of one day on one thread (10.4 and 11.1 images/s, PyTorch 9.1 "
        "and 8.5), 1.33 to 1.59 on two. 79 % of a step are products at 106 of 118 GFLOP/s, 8 % "
        "packing. Tried: fetching the next panel of B or the next tile of C ahead (slower)."
    ),
    r"resnet(18|50)|mobilenet_v1": (
        "what is left are oneDNN's 3x3 convolutions with stride 2 and on 7 x 7 images, and 1x1 "
        "ones at 79 to 109 GFLOP/s. Tried: own products for 1x1 with stride 1 (up to 25 % "
        "slower than oneDNN's), Winograd's filters packed once (4 % on one size). PyTorch's "
        "time differs by 15 to 30 % between processes: ResNet-50 1.33 to 1.48, ResNet-18 on two "
        "threads 1.32 to 1.41, MobileNet v1 1.68 to 2.23 in runs of some days."
    ),
    r"(resnet50|gpt|bert|lstm)_bf16": (
        "on that machine, a virtual one that shows AMX without its tiles' sizes, PyTorch ends in "
        "SIGILL unless oneDNN is limited. Why a step of BERT faults in 688 pages on two threads "
        "was not looked into (other programs ran then); PyTorch faults in 247,037."
    ),
    # --- arithmetic -----------------------------------------------------------------------------
    r"exp|exp, 1M doubles|tanh.*|erf, .*|gelu.*|(log_)?softmax.*|logsumexp.*|cross_entropy.*": (
        "bound by arithmetic and by memory: an exponential is 16 instructions of 512 bits a "
        "vector, 0.7 ms for 4M floats; softmax reads each row twice. Streaming the result past the "
        "cache changed nothing. "
        "logsumexp and cross_entropy store no exponential: of 0.36 ns an element in the cache 0.07 "
        "find the maximum, the rest is 10 multiply-adds of 512 bits a vector and rows' ends. "
        "Leaving out the test for extreme arguments gained 8 %."
    ),
    r"erfc.*|erfinv.*|lgamma.*|digamma.*": (
        "mostly arithmetic: long polynomials, in double for floats, keep the bounds of the "
        "accuracy page. Tried, and in use: polynomials by vectors for lgamma and erfinv of doubles "
        "(14.2 to 2.4 and 6.8 to 2.8 ms)."
    ),
    r"x \*\* 2\.5.*": (
        "mostly arithmetic, 90 (floats) and 112 (doubles) instructions a vector, for at most 0.7 "
        "and 1.2 ulp: logarithm and product in two parts, tables in registers; 0.80 to 0.87 of "
        "NumPy's time. Floats in double with the same tables took 1.23 ns an element against 0.85."
    ),
    r"embedding_bag.*": (
        "waits for the rows of a bag, of which 16 are fetched ahead (in a loop alone 374 to 220 us "
        "for width 64). Tried: 8, 24 and 32 rows, hints for other caches, gathers of AVX-512: no "
        "faster."
    ),
    r"x (//|%) .*": (
        "bound by arithmetic where the numbers are in the cache: converted, multiplied by the "
        "reciprocal, rounded, subtracted and converted back (divide.cc), which replaced division "
        "by the processor (1.84 to 0.20 ms for int32)."
    ),
    r"bincount.*|histc.*": (
        "a read, an addition and a write of a count an element: bincount spends 50 % there and "
        "13 % in the pass that bounds the values, histc 16 % in the division by a bin's width. "
        "Tables of each thread are in use; four tables in turn help up to 256 bins only."
    ),
    r"topk.*": (
        "half is comparing each element with the one that came out before. Tried: "
        "passing over 32 elements at a time that come too late, which it does now."
    ),
    r"dropout.*": (
        "of a thread's time 46 % are tempering, comparing and multiplying (a third of that waits "
        "for x, a sixth for the store), 18 % the twister; in the cache an element takes 0.36 ns, "
        "half of it the random words. Tried: words by vectors (4.7 to 2.6 ms); x fetched 1 to 32 "
        "KB ahead and pieces of 2,496 to 32,768 words were within noise, storing through the "
        "cache took 20 % more."
    ),
    r"interpolate.*": (
        "bilinear 1.6 to 2.6 ms (4.2 to 6.9 before), with its gradient 5.2 to 7.0, on one thread; "
        "of that 51 % are sums of rows, 28 % permutations along rows. Tried: streaming the "
        "result past the cache was 19 % slower at its fastest and 13 % faster beside other work."
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
        "reads rows, or parts of them, that memory cannot fetch far ahead. Tried: rows of an "
        "embedding and of index_select are fetched four ahead (163 to 139 us); every second "
        "element by permutes of 512 bits was slower than by 128 (950 to 1,050 us)."
    ),
    r"tril": (
        "zeros and copies of parts of rows: memmove took three times the samples of memset. Rows "
        "are streamed, which took a fifth off; the yardstick's 16 MB stay in the cache."
    ),
    r"gather\(.\).*|scatter_.*|index_put_.*|index_add_.*": (
        "waits for lines in any order; the next line is fetched while one is worked on, indices "
        "are checked by vectors, 256 at a time, and large results of gather are stored past the "
        "cache: 0.65 of PyTorch's time on one thread (1.2 before). Tried: fetching indices ahead "
        "and gathers of AVX-512 gained nothing; index_add_ gives each thread the lines of a range "
        "of bins, where fetching ahead was slower."
    ),
    r"grid_sample.*": (
        "waits for two lines of the cache a point and channel; corners are read as two pairs (7.6 "
        "to 6.0 ms). Tried, reads alone: single loads 7.5 ms, pairs 3.9, gathers of pairs 3.9, "
        "gathers of floats 6.5, lines fetched ahead 8.8."
    ),
    # --- reductions -----------------------------------------------------------------------------
    r"cumsum\(.\)|argmax\(0\)": (
        "sums are in double: four shuffles, five additions and two conversions for 8 floats; along "
        "dimension 0 both wait for pieces of 1 to 4 KB of each row. Tried: sums of columns kept in "
        "registers and indices carried along in vectors (4.4 to 1.8 and 6.8 to 1.1 ms)."
    ),
    r"max|max\(1\)|argmax\(1\)|norm|mean\(1\)": (
        "reads memory, then the block in the cache once more for the place. Tried: extremes of "
        "lanes put together at a block's end only, which changed nothing beyond noise."
    ),
    r"var\(1\)": (
        "one pass over each row since the last change (0.59 to 0.31 ms in a thread's time); the "
        "next row is fetched while one is summed."
    ),
    r"sum|sum\(.*|sum, .*": (
        "sums of floats are taken in parts, and in double from there, which does not depend on the "
        "number of threads: some more instructions than PyTorch's. Tried: eight sums instead of "
        "four, sums by pairs, and fetching ahead were no faster, loads out of order six times "
        "slower; with two threads on a quiet machine sum(1) took 145 us (PyTorch 151), sum of 1M "
        "30 (36). sum(0) of 1000 x 1000 took 0.95 to 1.11 of PyTorch's time in runs of one day."
    ),
    r"count_nonzero": (
        "compares 16 floats at a time and adds up masks: 0.21 ms on one thread in a quiet run "
        "(0.42 before), which is the rate of a copy there."
    ),
    r"any": "takes 30 us on two threads, of which beginning and ending a region are 1 to 2.",
    # --- layers ---------------------------------------------------------------------------------
    r"batch_norm.*|layer_norm.*": (
        "goes over a row or channel several times (statistics, then the result; three passes "
        "backward), the table counts one. Statistics are one pass now, and the next row is fetched "
        "meanwhile: on one thread layer_norm 2.4 to 1.4 ms, with its gradient 6.4 to 4.1, "
        "batch_norm 1.7 to 1.3 and 5.1 to 4.0. Of layer_norm's time 43 % are the result and its "
        "stores, 21 % statistics. Tried: fetching into the first-level cache (the gradient was "
        "slower), statistics together with the row before (no faster)."
    ),
    r"max_pool2d.*": (
        "forward 1.2 to 2.0 ms (1.7 to 2.5 before), with the gradient 4.5 to 7.0 (8.2 to 9.7), on "
        "one thread. Tried: lists of a row's elements computed once a plane, then none (5 %); "
        "adding gradients by vectors (0.7 to 1.8 us a plane against 0.75 to 1.3); streaming the "
        "gradient (2 to 3 % of a step)."
    ),
    r"depthwise 3x3 stride 2.*": (
        "half of the time strips of the images are copied into the cache, even and odd columns "
        "apart, and wait for memory; sums take about 30 %. The gradient of x is oneDNN's: one of "
        "our own for stride 2 was not tried. Tried: fetching 8 KB ahead while copying, in use."
    ),
    r"depthwise 3x3, .*": (
        "on one thread forward takes 0.34 ms of 14 x 14 (0.87, then 0.61 before), the gradients "
        "0.35 and 0.48: images are read where they are, by masked vectors, and filter and masks "
        "stay in registers. Rows of 14 leave two lanes of 16 empty. On two threads 108 parts of 5 "
        "us are dealt out; preparing the filters before takes 1 %."
    ),
    r"AdamW.*": (
        "reads four tensors and writes three in one pass by vectors, seven streams of memory at "
        "once: 80 % in the last quiet run. Fetching them ahead was not tried."
    ),
    # --- products -------------------------------------------------------------------------------
    r"(x @ y|bmm|linear) in bf16.*": (
        "both frameworks call oneDNN. Its fast kernels take whole results and a B that is packed "
        "or lies by columns: B by rows is laid out once for all tiles (11.1 to 10.7 ms on one "
        "thread, PyTorch 11.5), tiles of results are computed apart (64 x 4096: 16.3 to 12.0, "
        "PyTorch 12.7). Tried: packing a B by columns (takes 1 ms, gains nothing), other tiles, 2, "
        "4 and 8 products a call for bmm."
    ),
    r"x @ y, 1024 x 1024": (
        "within 3 % of NumPy's OpenBLAS, either way. Packing is 4 %; fetching the next panel of B "
        "or the next tile of C ahead was slower."
    ),
    r"bmm, 64.*": (
        "61 % in tiles of 12 rows, 4 % of 8, packing B 15 %, A 6 %. Nothing further was tried."
    ),
    r"bmm, (4096|65536).*": (
        "operands are read where they lie (small_gemm.cc); calls to OpenBLAS for each product took "
        "three times as long."
    ),
    r"(causal )?attention, .*": (
        "register tiles, exponentials, packing and the result's transpose. Tried: fetching the "
        "next panels ahead and reading weights where they lie, which it does now."
    ),
    r"1x1 .*|7x7 .*": (
        "Tried: strided 1x1 as own products of gathered positions (16 to 47 % faster, in use); "
        "with stride 1 they were up to 25 % slower than oneDNN's on images of 14 x 14 and more."
    ),
    r"3x3 .*|3x3, .*": (
        "Winograd's transforms and the packing of its filters come with each chunk of tiles; "
        "packing them once gained 4 % on 28 x 28 images and nothing elsewhere. On a quiet machine "
        "two threads gain 1.85 (64 channels, forward: 6.9 and 3.7 ms); gradient of w 8.1 to 9.8 ms "
        "beside other work, PyTorch 14 to 22; on two threads 1.50 and 0.84 in two runs of one day "
        "(9.9 and 5.4 ms, PyTorch 6.6 and 6.5; the first is what one thread takes). Tried: "
        "chunks of 128 tiles as tasks that never wait for another thread (7 % faster on "
        "112 x 112, within 3 % elsewhere, 4 to 8 % slower on one thread here). With "
        "stride 2 oneDNN's kernels, as in PyTorch."
    ),
    r"LSTM, .*|GRU, .*": (
        "of a layer's forward on two threads half is the product with the inputs, the other half "
        "24 steps that wait for each other: the cells take 9 %, packing 8 %, waiting 4 %. On a "
        "quiet machine two threads take 10.5 and 18.3 ms, PyTorch 10.6 and 19.7. Tried: tasks of "
        "32 units that do product and cell together, the state packed by those that compute it. "
        "Between 0.94 and 1.06 in two runs of one day."
    ),
    r"causal attention over full.*": (
        "0.53 to 0.58 in quiet runs. Vectors of 16 queries leave (1 + 16 / tokens) / 2 of the "
        "products; packing queries and writing the result are the same in both. Weights and their "
        "gradients are read where they lie now, which took 0.59 to 0.57 forward and backward."
    ),
    r"argsort.*": (
        "four passes of 10 bits at 3.4 ns an element; digits of 8 bits and buffers that combine "
        "writes were slower."
    ),
    # --- both threads ---------------------------------------------------------------------------
    r"copy, .*|zeros.*|arange.*|x\.add_\(1\)": (
        "bound by memory. Tried: with two threads half of the runs had both on one core (4 MB: 122 "
        "us, the others 55) until workers moved away by themselves; on a quiet machine copies of "
        "1, 4 and 8 MB take 17, 55 and 127 us (PyTorch 18, 66 and 169), x.add_(1) 150 to 180 (180 "
        "to 200), arange 204 (276)."
    ),
    r"x \+ (1.*|row|column)|x > 0|relu.*|clamp.*|add\(.*|where|masked_fill|float to.*": (
        "large results are stored past the cache, others by ordinary stores, which fetch each line "
        "first; what other work takes of main memory changed by half from minute to minute. Tried: "
        "storing results past the cache from 20 MB in all on (bfloat16 14 % faster, x > 0 unclear, "
        "x + 1 with two loops after it 5 % slower); fetching ahead (no faster)."
    ),
    r"cat, .*|x\.flip.*": (
        "as copies of such size, and as dependent on other work. Tried for flip: pieces of 2 KB "
        "(1.17 to 0.95 ms, but it needs a walk in the other direction)."
    ),
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
