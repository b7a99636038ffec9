"""Tokenizer files of the shapes that models come with, made of vocabularies that are trained here."""
import json

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

MARK = "\u2581"
SPECIAL = ["<unk>", "<s>", "</s>"]
METASPACE = {"type": "Metaspace", "replacement": MARK}
REPLACE = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
BLANKS = {"type": "Replace", "pattern": {"String": MARK}, "content": " "}
LLAMA_DECODER = {"type": "Sequence", "decoders": [BLANKS, {"type": "ByteFallback"}, {"type": "Fuse"},
                                                  {"type": "Strip", "content": " ", "start": 1, "stop": 0}]}
LLAMA_NORMALIZER = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, REPLACE]}
SPLITS = [{"type": "Split", "pattern": {"Regex": "\\p{N}{1,3}"}, "behavior": "Isolated", "invert": False},
          {"type": "Split", "pattern": {"Regex": "[a-z]+ing"}, "behavior": "MergedWithPrevious", "invert": False},
          {"type": "Split", "pattern": {"String": "the"}, "behavior": "MergedWithNext", "invert": False},
          {"type": "Split", "pattern": {"Regex": "[.,!?]"}, "behavior": "Contiguous", "invert": False},
          {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}]
TEMPLATE = {"type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}}


def added(vocab):
    """Tokens of all sorts; the library gives one that is in the vocabulary its id there, the others the next ones."""
    entry = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    tokens = [dict(content=text) for text in SPECIAL]
    odd = [dict(content="<tool>", special=False, normalized=True), dict(content="<mask>", lstrip=True),
           dict(content="<end>", rstrip=True), dict(content="of", single_word=True, special=False),
           dict(content="<tool>x", special=False), dict(content="a b", special=False, normalized=True)]
    ids = {text: i for i, text in enumerate(vocab)}
    return [{**entry, **one, "id": ids.setdefault(one["content"], len(ids))} for one in tokens + odd]


def trained(texts, size, words):
    """Tokens and merges of texts in which blanks are marks; words: no merge reaches over a blank."""
    t = Tokenizer(models.BPE())
    t.normalizer = normalizers.Replace(" ", MARK)
    if words:
        t.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, show_progress=False, limit_alphabet=120))
    model = json.loads(t.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].get), model["merges"]


def of_characters(tokens, merges, bytes_=range(256), model=None, **parts):
    vocab = [*SPECIAL, *(f"<0x{b:02X}>" for b in bytes_), *tokens]
    whole = {"type": "BPE", "dropout": None, "unk_token": "<unk>", "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": True, "byte_fallback": True, "ignore_merges": False,
             "vocab": {t: i for i, t in enumerate(vocab)}, "merges": merges, **(model or {})}
    return json.dumps({"version": "1.0", "truncation": None, "padding": None,
                       "added_tokens": added(vocab), "normalizer": None, "pre_tokenizer": None,
                       "post_processor": TEMPLATE, "decoder": LLAMA_DECODER, **parts, "model": whole},
                      ensure_ascii=False)


def of_bytes(texts, size, pre):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=size, show_progress=False, special_tokens=SPECIAL,
                                                     initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    t.add_tokens([AddedToken("<tool>", normalized=True), AddedToken("of", single_word=True)])
    return json.dumps({**json.loads(t.to_str()), "pre_tokenizer": pre, "post_processor": TEMPLATE}, ensure_ascii=False)


def kinds(texts, size):
    """Name -> the text of a tokenizer.json."""
    words, across = trained(texts, size, True), trained([line for t in texts for line in t.split("\n")], size, False)
    lines = [list(m) if isinstance(m, list) else m.split(" ") for m in words[1]]
    space = dict(METASPACE, split=True)
    metaspace = {"type": "Metaspace", "replacement": MARK, "prepend_scheme": "always", "split": True}
    sequence = {"type": "Sequence", "pretokenizers": SPLITS}
    digits = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, SPLITS[-1]]}
    few = {"byte_fallback": False}
    return {
        "llama2": of_characters(*words, normalizer=LLAMA_NORMALIZER),
        "old merges": of_characters(words[0], [" ".join(m) for m in lines], normalizer=LLAMA_NORMALIZER),
        "merges over blanks": of_characters(*across, normalizer=LLAMA_NORMALIZER),
        "mistral": of_characters(*words, pre_tokenizer=dict(METASPACE, prepend_scheme="first", split=False)),
        "metaspace": of_characters(*words, pre_tokenizer=dict(space, prepend_scheme="always"), decoder=metaspace),
        "metaspace never": of_characters(*words, pre_tokenizer=dict(space, prepend_scheme="never"),
                                         decoder=dict(metaspace, prepend_scheme="never")),
        "metaspace first": of_characters(*across, pre_tokenizer=dict(space, prepend_scheme="first")),
        "old metaspace": of_characters(*words, pre_tokenizer=dict(METASPACE, add_prefix_space=True),
                                       decoder=dict(METASPACE, add_prefix_space=True)),
        "gemma": of_characters(*words, normalizer=REPLACE, decoder={"type": "Sequence", "decoders": [
            BLANKS, {"type": "ByteFallback"}, {"type": "Fuse"}]}, pre_tokenizer={
                "type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious", "invert": False}),
        "unknown": of_characters(*words, model=few, pre_tokenizer=dict(space, prepend_scheme="always"),
                                 decoder=metaspace),
        "unknown apart": of_characters(*words, model=dict(few, fuse_unk=False), normalizer=LLAMA_NORMALIZER),
        "left out": of_characters(*words, model=dict(few, unk_token=None), normalizer=LLAMA_NORMALIZER),
        "some bytes": of_characters(*words, bytes_=range(0x80, 0xd0), normalizer=LLAMA_NORMALIZER),
        "ignore merges": of_characters(words[0], words[1][::3], model={"ignore_merges": True},
                                       pre_tokenizer=dict(space, prepend_scheme="always")),
        "no decoder": of_characters(*words, normalizer=LLAMA_NORMALIZER, decoder=None),
        "regex": of_characters(*words, normalizer={"type": "Sequence", "normalizers": [
            {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": "<>"}, LLAMA_NORMALIZER]}),
        "bytes, splits": of_bytes(texts, size, sequence),
        "bytes, digits": of_bytes(texts, size, digits),
    }
