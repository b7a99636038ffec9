#!/usr/bin/env python3
"""Makes tests/golden/weights: a small GPT-2 and a small Llama with random weights, written by Python's safetensors
under Hugging Face's names and shapes, and the logits that transformers computes of them on PyTorch.
usage: make_weights.py (with a Python that has torch, transformers and safetensors; weights_test.py needs none of them)
"""
import json, os, textwrap

import safetensors, torch, transformers
from safetensors.torch import save_file
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

folder = os.path.dirname(os.path.abspath(__file__)) + "/weights"
VOCAB, CONTEXT, WIDTH, LAYERS = 40, 24, 16, 2


def drawn(model):
    """Weights large enough that every part of the model shows in the logits."""
    for name, p in model.named_parameters():
        one = 1.0 if p.dim() == 1 and name.endswith("weight") else 0.0
        with torch.no_grad():
            p.copy_(one + torch.randn_like(p) * (0.2 if p.dim() == 1 else 0.3))
    return model.eval()


def gpt2():
    config = GPT2Config(vocab_size=VOCAB, n_positions=CONTEXT, n_embd=WIDTH, n_layer=LAYERS, n_head=2)
    model = drawn(GPT2LMHeadModel(config))
    # As the published model.safetensors has it: no prefix, no head of its own, and the masks.
    tensors = dict(model.transformer.state_dict())
    for i in range(LAYERS):
        tensors[f"h.{i}.attn.bias"] = torch.ones(CONTEXT, CONTEXT).tril().view(1, 1, CONTEXT, CONTEXT)
    return model, tensors


def llama():
    config = LlamaConfig(vocab_size=VOCAB, hidden_size=WIDTH, intermediate_size=24, num_hidden_layers=LAYERS,
                         num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=CONTEXT,
                         rms_norm_eps=1e-5, tie_word_embeddings=False)
    model = drawn(LlamaForCausalLM(config))
    return model, dict(model.state_dict())


def main():
    torch.manual_seed(20)
    os.makedirs(folder, exist_ok=True)
    ids = torch.randint(0, VOCAB, (2, CONTEXT))
    facts = {"torch": torch.__version__, "transformers": transformers.__version__,
             "safetensors": safetensors.__version__, "ids": ids.tolist()}
    for name, make in (("gpt2", gpt2), ("llama", llama)):
        model, tensors = make()
        save_file({k: t.contiguous() for k, t in tensors.items()}, f"{folder}/{name}.safetensors", {"format": "pt"})
        with torch.no_grad():
            logits = model(ids).logits
            exact = model.double()(ids).logits
        print(name, "logits up to", logits.abs().max().item(), "of f64", (logits - exact).abs().max().item())
        facts[name] = [round(v, 6) for v in exact.flatten().tolist()]
    with open(f"{folder}/logits.json", "w") as f:
        f.write(textwrap.fill(json.dumps(facts), 118, break_long_words=False, break_on_hyphens=False) + "\n")


main()
