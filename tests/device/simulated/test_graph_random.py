"""Random numbers inside of CUDA graphs: each replay draws on, as the work would without a graph."""

import pytest

import taeda as torch

KERNELS = hasattr(torch._C, "_cuda_has_kernels")
pytestmark = pytest.mark.skipif(not KERNELS, reason="operators have no kernels for CUDA here")


def draws(generator=None):
    x = torch.rand(300, device="cuda", generator=generator)
    y = torch.empty(40, device="cuda").normal_(generator=generator)
    return x, y


def drawn(tensors):
    return [t.tolist() for t in tensors]


def captured(function, *generators, warm=True):
    if warm:
        function()
    graph = torch.cuda.CUDAGraph()
    for generator in generators:
        graph.register_generator_state(generator)
    with torch.cuda.graph(graph):
        results = function()
    return graph, results


def test_replays_draw_what_the_work_would_without_a_graph():
    graph, results = captured(draws)
    torch.cuda.manual_seed(3)
    expected = [drawn(draws()) for _ in range(3)]
    torch.cuda.manual_seed(3)
    for values in expected:
        graph.replay()
        assert drawn(results) == values
    assert expected[0] != expected[1]


def test_a_capture_takes_nothing_from_the_generator():
    draws()
    torch.cuda.manual_seed(4)
    before = torch.cuda.get_rng_state()
    graph, _ = captured(draws, warm=False)
    assert torch.cuda.get_rng_state().tolist() == before.tolist()
    graph.replay()
    after = torch.cuda.get_rng_state()
    torch.cuda.set_rng_state(before)
    draws()
    assert torch.cuda.get_rng_state().tolist() == after.tolist()


def test_graphs_and_other_work_take_turns():
    graph, results = captured(draws)
    torch.cuda.manual_seed(5)
    expected = [drawn(draws()) for _ in range(4)]
    torch.cuda.manual_seed(5)
    found = []
    for i in range(4):
        if i % 2:
            found.append(drawn(draws()))
            continue
        graph.replay()
        found.append(drawn(results))
    assert found == expected


def test_two_graphs_of_one_generator():
    first, a = captured(draws)
    second, b = captured(lambda: (torch.rand(5, device="cuda"),))
    torch.cuda.manual_seed(6)
    expected = drawn(draws()), torch.rand(5, device="cuda").tolist(), drawn(draws())
    torch.cuda.manual_seed(6)
    first.replay()
    once = drawn(a)
    second.replay()
    first.replay()
    assert (once, b[0].tolist(), drawn(a)) == expected


def test_dropout_in_a_graph_and_its_gradient():
    x = torch.ones(1000, device="cuda", requires_grad=True)

    def work():
        y = torch.dropout(x, 0.5, True)
        return y, torch.autograd.grad(y.sum(), x)[0]

    graph, (y, g) = captured(work)
    kept = []
    for _ in range(2):
        graph.replay()
        assert y.tolist() == g.tolist()
        kept.append(y.tolist())
    assert kept[0] != kept[1]


def test_a_generator_of_the_programs_has_to_be_registered():
    generator = torch.Generator("cuda")
    generator.manual_seed(7)
    expected = [drawn(draws(generator)) for _ in range(2)]
    graph, results = captured(lambda: draws(generator), generator)
    generator.manual_seed(7)
    for values in expected:
        graph.replay()
        assert drawn(results) == values
    with pytest.raises(RuntimeError, match=r"not in capture mode(.|\n)*register_generator_state"):
        captured(lambda: draws(generator), warm=False)
    assert not torch.cuda.is_current_stream_capturing()


def test_what_is_no_generator_of_a_device_is_refused():
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(TypeError, match=r"expected a torch\.Generator, got int"):
        graph.register_generator_state(3)
    with pytest.raises(RuntimeError, match="expected a generator of a CUDA device, got one of cpu"):
        graph.register_generator_state(torch.Generator())


def test_a_generator_of_another_device_is_refused():
    graph = torch.cuda.CUDAGraph()
    graph.register_generator_state(torch.Generator("cuda:1"))
    with pytest.raises(
        RuntimeError, match="expected generators of cuda:0, which is captured, got one of cuda:1"
    ):
        with torch.cuda.graph(graph):
            pass
    assert not torch.cuda.is_current_stream_capturing()
    assert torch.rand(3, device="cuda").shape == (3,)


def test_replays_follow_one_another_on_any_streams(late):
    """A second replay's seed and offset are written when the first one's have been read."""
    last, before = torch.zeros(300, device="cuda"), torch.zeros(300, device="cuda")

    def work():
        before.copy_(last)
        last.copy_(torch.rand(300, device="cuda"))

    graph, _ = captured(work)
    torch.cuda.manual_seed(9)
    expected = [torch.rand(300, device="cuda").tolist() for _ in range(2)]
    torch.cuda.manual_seed(9)
    streams = torch.cuda.Stream(), torch.cuda.Stream()
    for stream in streams:
        stream.wait_stream(torch.cuda.current_stream())
    for stream in streams:  # nothing here says which comes first
        with torch.cuda.stream(stream):
            graph.replay()
    torch.cuda.synchronize()
    assert [before.tolist(), last.tolist()] == expected


def test_replays_on_other_streams_are_ordered_by_events():
    graph, results = captured(draws)
    torch.cuda.manual_seed(8)
    expected = [drawn(draws()) for _ in range(2)]
    torch.cuda.manual_seed(8)
    streams = [torch.cuda.Stream(), torch.cuda.Stream()]
    for i, stream in enumerate(streams):
        stream.wait_stream(streams[i - 1])
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            graph.replay()
            assert drawn(results) == expected[i]


def test_a_reset_graph_gives_its_memory_back():
    graph, _ = captured(draws)
    graph.replay()
    torch.cuda.synchronize()
    graph.reset()
    again = torch.cuda.CUDAGraph()
    with torch.cuda.graph(again):
        x = torch.rand(3, device="cuda")
    again.replay()
    assert len(set(x.tolist())) == 3
