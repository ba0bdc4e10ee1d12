// Package serve answers HTTP requests with a language model, as OpenAI's
// completions endpoint does, and as lm-evaluation-harness expects of its
// local-completions models:
//
//	POST /v1/completions    text, or token ids; echo, log-probabilities, streams
//	GET  /v1/models         the one model there is
//	GET  /tokenizer_info    its tokenizer
//	POST /tokenize          {"prompt": "..."} -> {"tokens": [...]}
//	POST /detokenize        {"tokens": [...]} -> {"prompt": "..."}
//	GET  /health, /version
//
// One request at a time has the model; others wait in a queue of bounded
// length, and what finds it full is told to come back (503, Retry-After).
// Everything a client can make large is bounded: connections, headers, bodies,
// prompts, tokens, log-probabilities, waiting, computing, writing. A client
// that goes away stops its work.
//
// # Log-probabilities
//
// With "logprobs": k each token has its own and the k likeliest. With "echo"
// the prompt's tokens come first, of which the first has null; so
//
//	{"prompt": [[15496, 995]], "echo": true, "logprobs": 1, "max_tokens": 1}
//
// has three entries: two of the prompt, one drawn. A drawn token has its entry
// also where it ends the text (the document separator), or a stop string does:
// clients count entries. top_logprobs always hold the token itself and the
// likeliest one; they are null with "logprobs": 0. A log-probability below
// -9999 is written as that number.
package serve
