# SPDX-License-Identifier: Apache-2.0
#
# torch.py - PyTorch as a peer: a process that solves problems which torch.c sends over a socket.
#
# A message is a line of JSON, then the bytes that it announces.  Operands are views, by extents and strides
# in elements, of buffers of their own.  Of several ways to compute the same, the fastest is kept.
import json
import os
import signal
import socket
import sys
import time
import warnings

KEY_LENGTHS, QUERY_LENGTHS = 7, 8                   # operands of attention


def reader(connection):
    """Reads lines and blocks of bytes."""
    stream = connection.makefile("rb")

    def line():
        text = stream.readline()
        return json.loads(text) if text else None

    def block(count):
        data = bytearray(stream.read(count))
        if len(data) != count:
            raise EOFError
        return data

    return line, block


class Problem:
    """One prepared problem: its operands on the device, and the call that solves it."""

    def __init__(self, torch, device, message, block):
        self.torch, self.device, self.message = torch, device, message
        types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "f64": torch.float64}
        self.at = {}
        self.placed = {}                            # of outputs that are packed: what makes them whole
        for o in message["operands"]:
            flat = torch.frombuffer(block(o["bytes"]), dtype=types[o["type"]]).to(device)
            self.at[o["index"]] = torch.as_strided(flat, o["extent"], o["stride"], o["start"])
        ways = getattr(self, "ways_of_" + message["op"])()
        self.call, self.way, self.result = self.fastest(ways)

    # ---- operations: a list of (name, call); a call returns {index: result} ----

    def ways_of_softmax(self):
        functional, said = self.torch.nn.functional, self.message
        if said["mask"] or said["causal"] or said["scale"] != 1:
            raise ValueError("it has no mask and no scale in one call")
        axis = -1 - said["axis"]
        if said["backward"]:
            y, dy = self.at[0], self.at[1]
            step = self.torch.ops.aten._log_softmax_backward_data if said["log"] else \
                self.torch.ops.aten._softmax_backward_data
            return [("aten", lambda: {2: step(dy, y, axis % y.dim(), y.dtype)})]
        x, step = self.at[0], functional.log_softmax if said["log"] else functional.softmax
        return [("aten", lambda: {1: step(x, dim=axis)})]

    def ways_of_attention(self):
        torch, said = self.torch, self.message
        try:
            from torch.nn.attention import SDPBackend, sdpa_kernel
            from torch.nn.attention.bias import causal_lower_right
        except ImportError:
            raise ValueError("attention is asked for from PyTorch 2.3 on, and this is " + torch.__version__)
        if said["backward"]:
            return self.ways_of_gradients()
        q, k, v = self.at[0], self.at[1], self.at[2]
        more = {"scale": said["scale"]}
        if said["lacks"]:
            raise ValueError("it has no window, softcap, log-sum-exp, sinks and pages in one call")
        if {KEY_LENGTHS, QUERY_LENGTHS} & self.at.keys():
            return self.ways_of_lengths(q, k, v)
        if q.shape[1] != k.shape[1]:
            more["enable_gqa"] = True
        if said["mask"]:
            more["attn_mask"] = self.at[4]
        elif said["causal"] == "first" or (said["causal"] and q.shape[2] == k.shape[2]):
            more["is_causal"] = True
        elif said["causal"]:
            more["attn_mask"] = causal_lower_right(q.shape[2], k.shape[2])

        def way(backend):
            def call():
                with sdpa_kernel([backend]):
                    return {3: torch.nn.functional.scaled_dot_product_attention(q, k, v, **more)}
            return call

        names = ["FLASH_ATTENTION", "CUDNN_ATTENTION", "EFFICIENT_ATTENTION", "MATH"]
        return [(name.lower(), way(getattr(SDPBackend, name))) for name in names if hasattr(SDPBackend, name)]

    def ways_of_lengths(self, q, k, v):
        """Sequences of different lengths: packed one behind the other, beforehand, or a call for each."""
        torch, said = self.torch, self.message
        from torch.nn.attention.bias import causal_lower_right

        def lengths(index, most):
            given = self.at[index].view(torch.int32).tolist() if index in self.at else [most] * len(q)
            return [min(max(n, 0), most) for n in given]

        rows, keys = lengths(QUERY_LENGTHS, q.shape[2]), lengths(KEY_LENGTHS, k.shape[2])
        if said["mask"] or 0 in keys or said["causal"] and any(n > m for n, m in zip(rows, keys)):
            raise ValueError("it is asked for lengths where all queries see a key, and without a mask")
        if said["causal"] == "first" and rows != keys:
            raise ValueError("it aligns the last rows of what is causal")

        def packed(x, counts):
            return torch.cat([one[:, :n].transpose(0, 1) for one, n in zip(x, counts)])

        def starts(counts):
            ends = torch.tensor([0] + counts, device=self.device).cumsum(0)
            return ends.to(torch.int32)

        def placed(out):
            whole = q.new_zeros((*q.shape[:3], v.shape[3]))
            for to, one, n in zip(whole, out if isinstance(out, list) else out.split(rows), rows):
                to[:, :n] = one.transpose(0, 1)
            return whole

        self.placed[3] = placed
        aten, scale, causal = torch.ops.aten, {"scale": said["scale"]}, bool(said["causal"])
        pq, pk, pv = packed(q, rows), packed(k, keys), packed(v, keys)
        cumulated = starts(rows), starts(keys), max(rows), max(keys)

        def flash_attention():
            return {3: aten._flash_attention_forward(pq, pk, pv, *cumulated, 0.0, causal, False, **scale)[0]}

        def cudnn_attention():
            return {3: aten._cudnn_attention_forward(pq, pk, pv, None, *cumulated, False, 0.0, causal, False,
                                                     **scale)[0]}

        def efficient_attention():
            batch = (x.unsqueeze(0) for x in (pq, pk, pv))
            last = 2 if causal else 0
            return {3: aten._efficient_attention_forward(*batch, None, *cumulated, 0.0, last, False,
                                                         **scale)[0].squeeze(0)}

        def each():
            done = []
            for a, b, c, n, m in zip(q, k, v, rows, keys):
                more = dict(scale, enable_gqa=True) if len(a) != len(b) else dict(scale)
                if causal and n == m:
                    more["is_causal"] = True
                elif causal:
                    more["attn_mask"] = causal_lower_right(n, m)
                call = torch.nn.functional.scaled_dot_product_attention
                done.append(call(a[None, :, :n], b[None, :, :m], c[None, :, :m], **more)[0].transpose(0, 1))
            return {3: done}

        ways = [flash_attention, cudnn_attention, efficient_attention] if self.device.type == "cuda" else []
        return [(way.__name__, way) for way in ways + [each]]

    def ways_of_gradients(self):
        """Those of attention, from the output and log-sum-exp given; its own forward says the rest, once."""
        q, k, v, out, lse, d_out, said = *(self.at[i] for i in (0, 1, 2, 3, 5, 10)), self.message
        aten, scale, causal = self.torch.ops.aten, {"scale": said["scale"]}, bool(said["causal"])
        if said["mask"] or said["lacks"] or q.shape[1] != k.shape[1]:
            raise ValueError("it is asked for gradients of heads of their own without a mask alone")
        if said["causal"] == "last" and q.shape[2] != k.shape[2]:
            raise ValueError("its gradients align the first rows of what is causal")

        def flash():
            _, own, cq, ck, mq, mk, seed, offset, _ = aten._scaled_dot_product_flash_attention(
                q, k, v, 0.0, causal, False, **scale)
            sums = lse.reshape(own.shape)
            return lambda: aten._scaled_dot_product_flash_attention_backward(
                d_out, q, k, v, out, sums, cq, ck, mq, mk, 0.0, causal, seed, offset, **scale)

        def cudnn():
            _, own, cq, ck, mq, mk, seed, offset, _ = aten._scaled_dot_product_cudnn_attention(
                q, k, v, None, True, 0.0, causal, False, **scale)
            sums = lse.reshape(own.shape)
            return lambda: aten._scaled_dot_product_cudnn_attention_backward(
                d_out, q, k, v, out, sums, seed, offset, None, cq, ck, mq, mk, 0.0, causal, **scale)

        def efficient():
            _, own, seed, offset = aten._scaled_dot_product_efficient_attention(
                q, k, v, None, True, 0.0, causal, **scale)
            sums = lse.reshape(own.shape)
            return lambda: aten._scaled_dot_product_efficient_attention_backward(
                d_out, q, k, v, None, out, sums, seed, offset, 0.0, [True] * 3 + [False], causal, **scale)

        def on_cpu():
            _, own = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, **scale)
            sums = lse.reshape(own.shape)
            return lambda: aten._scaled_dot_product_flash_attention_for_cpu_backward(
                d_out, q, k, v, out, sums, 0.0, causal, **scale)

        def way(begin):
            kept = []

            def call():
                if not kept:
                    kept.append(begin())
                return dict(zip((11, 12, 13), kept[0]()))
            return call

        return [(begin.__name__, way(begin)) for begin in
                ((flash, cudnn, efficient) if self.device.type == "cuda" else (on_cpu,))]

    # ---- time ----

    def wait(self):
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()

    def fastest(self, ways):
        best, failed = None, []
        for name, call in ways:
            if name == "math" and best is not None:         # by hand, with its scores in memory
                continue
            try:
                result = call()
                self.wait()
                seconds = []
                for _ in range(3):
                    start = time.perf_counter()
                    call()
                    self.wait()
                    seconds.append(time.perf_counter() - start)
                if best is None or min(seconds) < best[0]:
                    best = (min(seconds), call, name, result)
            except (RuntimeError, TypeError, ValueError) as error:
                failed.append("%s: %s" % (name, str(error).split("\n")[0]))
        if best is None:
            raise ValueError("; ".join(failed)[:400])
        return best[1:]

    def graph(self, calls, count):
        """So many times these calls as one graph: short calls would wait for Python."""
        kept = self.__dict__.setdefault("graphs", {})
        key = (count, *calls)
        if key not in kept:
            graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(graph):
                for _ in range(count):
                    for call in calls:
                        call()
            kept[key] = graph
        return kept[key]

    def timed(self, repeats, following):
        """Seconds of the device on so many times this call and those of the following problems, in a row."""
        torch, calls = self.torch, [self.call] + [problem.call for problem in following]
        if self.device.type != "cuda":
            return -1.0
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        each = min(repeats, 32)
        try:
            runs = [self.graph(calls, each)] * (repeats // each)
            runs += [self.graph(calls, 1)] * (repeats - each * len(runs))
            steps = [run.replay for run in runs]
        except RuntimeError:
            steps = calls * repeats
        self.wait()
        begin.record()
        for step in steps:
            step()
        end.record()
        self.wait()
        return begin.elapsed_time(end) / 1000

    def run(self):
        self.result = self.call()
        self.wait()

    def read(self, index):
        """The elements of an output in the order of their indices."""
        torch, out = self.torch, self.result[index]
        out = self.placed[index](out) if index in self.placed else out
        flat = out.detach().contiguous().cpu().reshape(-1)
        return flat.view(torch.uint8).numpy().tobytes()


def device_of(torch, said):
    """The device that ours runs on."""
    if said["cpu"]:
        torch.set_num_threads(len(os.sched_getaffinity(0)))
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ValueError("this PyTorch sees no GPU")
    for i in range(torch.cuda.device_count()):
        uuid = str(getattr(torch.cuda.get_device_properties(i), "uuid", "")).replace("-", "").lower()
        if torch.cuda.device_count() == 1 or uuid and uuid in said["uuid"].replace("-", "").lower():
            torch.cuda.set_device(i)
            return torch.device("cuda", i)
    raise ValueError("this PyTorch does not see the GPU that ours runs on")


def main():
    connection = socket.socket(fileno=int(sys.argv[1]))
    line, block = reader(connection)
    signal.signal(signal.SIGINT, signal.SIG_IGN)        # the end of the connection ends this process
    warnings.simplefilter("ignore")                     # a way that does not fit says so by an exception
    problems, torch, device = {}, None, None

    def answer(data=b"", **fields):
        fields["bytes"] = len(data)
        connection.sendall(json.dumps(fields).encode() + b"\n" + data)

    while True:
        said = line()
        if said is None:
            return
        blocks = sum(o["bytes"] for o in said.get("operands", []))
        try:
            if said["do"] == "open":
                import torch
                device = device_of(torch, said)
                torch.set_grad_enabled(False)
                torch.backends.cuda.matmul.allow_tf32 = False
                answer(version="PyTorch " + torch.__version__)
            elif said["do"] == "prepare":
                before, count = block, [0]

                def counted(size):
                    count[0] += size
                    return before(size)

                try:
                    problems[said["id"]] = Problem(torch, device, said, counted)
                finally:
                    before(blocks - count[0])
                answer(way=problems[said["id"]].way)
            elif said["do"] == "run":
                problems[said["id"]].run()
                answer()
            elif said["do"] == "time":
                first, *following = (problems[i] for i in said["ids"])
                answer(seconds=first.timed(said["repeats"], following))
            elif said["do"] == "read":
                answer(problems[said["id"]].read(said["index"]))
            elif said["do"] == "finish":
                problems.pop(said["id"], None)
                answer()
        except EOFError:
            return
        except ImportError:
            answer(why="PyTorch is not installed for python3: pip install torch")
        except Exception as error:                      # whatever PyTorch raises becomes a sentence
            answer(why=str(error).split("\n")[0][:400] or type(error).__name__)


main()
