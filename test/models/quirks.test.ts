import { describe, expect, test } from 'vitest';
import { refusedParameter } from '../../src/models/refusals.js';
import type { ChatRequest } from '../../src/models/request.js';
import { ServerWays } from '../../src/models/server-ways.js';
import { keptLog, memoryStorage } from './helpers.js';

const sent: ChatRequest = {
  api: 'chat',
  parameters: {
    model: 'm',
    stream: true,
    stream_options: { include_usage: true },
    max_tokens: 500,
    temperature: 0.5,
  },
  messages: [{ role: 'user', content: 'hi' }],
  tools: [{ name: 'look_up', description: '', parameters: {} }],
  sendsImages: true,
  echoesTo: null,
  isToolsOrReasoning: false,
};
const toolless: ChatRequest = { ...sent, tools: [] };
const afterCalls: ChatRequest = {
  ...toolless,
  messages: [
    { role: 'assistant', content: '', calls: [{ id: 'a', name: 'x', arguments: '{}' }] },
    { role: 'tool', callId: 'a', content: 'y' },
  ],
};

/** The words are those of real servers, shortened. */
describe('what a refusal is about', () => {
  test.each([
    [
      400,
      'max_tokens',
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      'max_tokens',
    ],
    [
      400,
      undefined,
      'max_tokens is too large: 500. This model supports at most 100 completion tokens',
      'max_tokens',
    ],
    [
      400,
      'temperature',
      "Unsupported value: 'temperature' does not support 0.5 with this model when using tools.",
      'temperature',
    ],
    [422, undefined, 'temperature: must be at most 0', 'temperature'],
    [400, undefined, 'Unrecognized request argument supplied: stream_options', 'stream_options'],
    [422, 'stream_options', 'stream_options: Extra inputs are not permitted', 'stream_options'],
    [400, 'stream', 'Your organization must be verified to stream this model.', 'stream'],
    [400, undefined, 'Streaming is not supported for this model', 'stream'],
    [400, undefined, 'registry.ollama.ai/library/gemma:latest does not support tools', 'tools'],
    [404, undefined, 'No endpoints found that support tool use.', 'tools'],
    [
      400,
      undefined,
      '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
      'tools',
    ],
    [500, undefined, 'tools param requires --jinja flag', 'tools'],
    [400, undefined, 'Function calling is not enabled for models/gemma', 'tools'],
    [400, undefined, '`tool calling` is not supported with this model', 'tools'],
    [422, 'tools', 'tools: Extra inputs are not permitted', 'tools'],
    [400, undefined, 'Unrecognized request argument supplied: tools', 'tools'],
    [
      400,
      undefined,
      'tools is not supported in this model. For a list of supported models, refer to',
      'tools',
    ],
    [400, undefined, 'model features function calling not support', 'tools'],
    [
      400,
      undefined,
      'Invalid request content: The model does not support tool use or function calling but tools or tool_choice have been specified on the request.',
      'tools',
    ],
    [400, undefined, "This model doesn't support tool use in streaming mode.", 'stream'],
    [400, undefined, 'invalid temperature: only 1 is allowed for this model', 'temperature'],
  ])('%s %s %j: %s', (status, param, words, quirk) => {
    expect(refusedParameter(sent, { kind: 'answered', status, param, words })).toBe(quirk);
  });

  test.each([
    [400, undefined, 'The model is not there'],
    [401, undefined, 'temperature'],
    [500, undefined, 'The function is temporarily unavailable'],
    [500, undefined, 'temperature'],
    [
      400,
      undefined,
      "Tool call validation failed: parameters for tool look_up did not match schema: errors: [missing properties: 'word', additionalProperties 'wort' not allowed]",
    ],
    [
      400,
      undefined,
      "tool call validation failed: attempted to call tool 'look_up' which was not in request.tools",
    ],
    [400, undefined, 'Tool choice is none, but model called a tool'],
    [400, undefined, 'Invalid tool arguments: extra fields not permitted: temperature'],
    [400, undefined, "unexpected property 'max_tokens' in the arguments of tool look_up"],
    [
      400,
      'tools',
      "Invalid 'tools': array too long. Expected an array with maximum length 128, but got 129 instead.",
    ],
    [
      400,
      'tool look_up, tools[24].function.parameters',
      "invalid JSON schema for tool look_up, tools[24].function.parameters: 'required' present but 'properties' is missing",
    ],
    [422, 'tools.0.function.strict', 'tools.0.function.strict: Extra inputs are not permitted'],
    [400, undefined, 'The tool look_up is not allowed here'],
    [400, undefined, 'Parallel tool calls are not supported by this model'],
    [400, undefined, 'This model does not support function calling with JSON mode'],
    [400, undefined, 'The requested responses are not allowed, whatever the temperature outside'],
    [500, undefined, 'Tool use is temporarily unavailable'],
    [400, undefined, "Invalid schema for function 'look_up': None is not of type 'array'."],
    [400, 'messages.[1].role', "messages with role 'tool' must be a response to a preceding message"],
    [
      400,
      undefined,
      'Could not finish the message because max_tokens was reached. Please try again with higher max_tokens.',
    ],
  ])('%s %s %j is about nothing that can be left out', (status, param, words) => {
    expect(refusedParameter(sent, { kind: 'answered', status, param, words })).toBe(null);
  });

  test('only what was sent can be refused', () => {
    const words =
      'max_completion_tokens, stream_options, temperature, streaming not supported; does not support tools';
    const bare: ChatRequest = {
      api: 'chat',
      parameters: { model: 'm', stream: false },
      messages: [],
      tools: [],
      sendsImages: true,
      echoesTo: null,
      isToolsOrReasoning: false,
    };
    expect(refusedParameter(bare, { kind: 'answered', status: 400, words })).toBe(null);
  });

  test('calls in the history, where none are offered', () => {
    const words = 'Anthropic expects the `tools=` param to be passed in.';
    expect(refusedParameter(afterCalls, { kind: 'answered', status: 400, words })).toBe(
      'calls_without_tools',
    );
    expect(refusedParameter(toolless, { kind: 'answered', status: 400, words })).toBe(null);
  });
});

describe('what a refusal on the Responses API is about', () => {
  const there: ChatRequest = { ...sent, api: 'responses', isToolsOrReasoning: true };
  test.each([
    [404, undefined, 'Not Found', 'responses'],
    [400, undefined, 'The /v1/responses endpoint is not supported for this model', 'responses'],
    [400, 'include', "Unknown parameter: 'include'.", 'responses'],
    [422, 'store', 'store: Extra inputs are not permitted', 'responses'],
    [422, 'input', 'input: Input should be a valid string', 'responses'],
    [422, 'input.0.content', 'input.0.content: Input should be a valid string', null],
    [422, 'input', 'input must be a string', 'responses'],
    [400, 'input', 'Your input was flagged as potentially violating our usage policy.', null],
    [400, 'input', 'This input cannot be processed.', null],
    [400, undefined, 'Such responses are not allowed by our policy.', null],
    [400, 'input', "Invalid 'input': too many items.", null],
  ])('%s %s %j: %s', (status, param, words, quirk) => {
    expect(refusedParameter(there, { kind: 'answered', status, param, words })).toBe(quirk);
  });
});

describe('roles that a template does not know', () => {
  const instructed: ChatRequest = {
    ...toolless,
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'user', content: 'hi' },
    ],
  };
  const withTools: ChatRequest = {
    ...instructed,
    messages: [...instructed.messages, ...afterCalls.messages],
  };
  const untidy: ChatRequest = {
    ...instructed,
    messages: [
      { role: 'system', content: 'Be kind.' },
      { role: 'assistant', content: 'Hello!', calls: [] },
      { role: 'user', content: 'hi' },
    ],
  };

  /** vLLM; llama.cpp; LM Studio (in a stream); TGI; Mistral's first; Ministral; Gemini's API; OpenAI; Anthropic; pydantic. */
  test.each<[number | undefined, string]>([
    [400, 'System role not supported'],
    [
      500,
      "Jinja Exception: System role not supported at row 1, column 75: {{ raise_exception('System role not supported') }}",
    ],
    [undefined, 'Error rendering prompt with jinja template: "System role not supported".'],
    [422, 'Template error: invalid operation: System role not supported (in <string>:1)'],
    [400, 'Error rendering prompt with jinja template: "Only user and assistant roles are supported!".'],
    [500, 'Only user, assistant and tool roles are supported, got system.'],
    [400, 'Developer instruction is not enabled for models/gemma-3-27b-it'],
    [400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."],
    [400, "role 'system' is not supported on this model"],
    [400, "The 'system' role is not supported by this model."],
    [400, "'system' is not a valid role for this model"],
    [400, "Invalid 'messages[0].role': 'system' is not one of ['user', 'assistant']"],
    [400, "Invalid value: 'system'. Supported values are: 'user' and 'assistant'."],
    [400, 'Model does not support role: system'],
    [
      422,
      "Input tag 'system' found using 'role' does not match any of the expected tags: 'user', 'assistant'",
    ],
    [422, "messages.0.role: Input should be 'user' or 'assistant'"],
  ])('%s %j is about the system message', (status, words) => {
    expect(refusedParameter(instructed, { kind: 'answered', status, words })).toBe('system_role');
    expect(refusedParameter(toolless, { kind: 'answered', status, words })).toBe(null);
  });

  test.each([
    [untidy, 'Conversation roles must alternate user/assistant/user/assistant/...', 'role_order'],
    [untidy, 'A conversation must alternate between user and assistant roles.', 'role_order'],
    [withTools, 'Conversation roles must alternate user/assistant/user/assistant/...', 'tool_results'],
    [withTools, 'Only user, system and assistant roles are supported!', 'tool_results'],
    [instructed, 'Conversation roles must alternate user/assistant/user/assistant/...', 'system_role'],
    [
      instructed,
      'After the optional system message, conversation roles must alternate user and assistant roles',
      null,
    ],
    [instructed, 'Only user, system and assistant roles are supported!', null],
  ])('what is behind it is told by what was sent', (request, words, quirk) => {
    expect(refusedParameter(request, { kind: 'answered', status: 500, words })).toBe(quirk);
  });
});

describe('the table of what was learnt', () => {
  const tools = () => ({ refused: ['tools' as const] });

  test('outlives a restart, by server and model, beside what another process wrote', async () => {
    const storage = memoryStorage();
    const ways = new ServerWays(storage, keptLog());
    const other = new ServerWays(storage, keptLog());
    await ways.change('here', 'a', () => ({ refused: ['stream_options'] }));
    await other.change('there', 'a', tools);
    await ways.change('here', 'a', ({ refused }) => ({ refused: [...refused, 'temperature'], told: 4_096 }));
    const again = new ServerWays(storage, keptLog());
    await again.refresh();
    expect(again.of('here', 'a')).toMatchObject({ refused: ['temperature', 'stream_options'], told: 4_096 });
    expect(again.of('there', 'a').refused).toEqual(['tools']);
    expect(again.of('here', 'b').refused).toEqual([]);
    expect(again.modelsOf('here')).toEqual(['a']);
  });

  test('keeps what several processes learn in the same moment', async () => {
    const storage = memoryStorage();
    const learners = ['a', 'b', 'c'].map((model) => ({ model, ways: new ServerWays(storage, keptLog()) }));
    await Promise.all(
      learners.flatMap(({ model, ways }) => [
        ways.change('here', model, tools),
        ways.change('here', 'shared', ({ refused }) => ({ refused: [...refused, 'images'] })),
      ]),
    );
    const again = new ServerWays(storage, keptLog());
    await again.refresh();
    for (const { model } of learners) expect(again.of('here', model).refused).toEqual(['tools']);
    expect(again.of('here', 'shared').refused).toEqual(['images']);
  });

  test('is stored when storage works again, beside what others stored meanwhile', async () => {
    const storage = memoryStorage();
    let isFull = true;
    const full = {
      load: storage.load,
      replace: (from: string | null, to: string) =>
        isFull ? Promise.reject(new Error('disk full')) : storage.replace(from, to),
    };
    const ways = new ServerWays(full, keptLog());
    await ways.change('here', 'a', tools);
    await new ServerWays(storage, keptLog()).change('there', 'b', tools);
    await ways.refresh();
    expect(ways.of('here', 'a').refused).toEqual(['tools']);
    isFull = false;
    await ways.change('here', 'c', tools);
    const again = new ServerWays(storage, keptLog());
    await again.refresh();
    const known = [again.of('here', 'a'), again.of('there', 'b'), again.of('here', 'c')];
    expect(known.map(({ refused }) => refused)).toEqual([['tools'], ['tools'], ['tools']]);
  });

  test('is forgotten when told, in another process, too', async () => {
    const storage = memoryStorage();
    const ways = new ServerWays(storage, keptLog());
    await ways.change('here', 'a', tools);
    await ways.change('there', 'a', tools);
    await new ServerWays(storage, keptLog()).forget('here');
    await ways.refresh();
    expect(ways.of('here', 'a').refused).toEqual([]);
    expect(ways.of('there', 'a').refused).toEqual(['tools']);
  });

  test.each([
    '',
    'not json',
    '[1]',
    '{"here a":7}',
    '{"here a":{"refused":"tools","learnt":{"tokens":"x"}}}',
  ])('is empty where %j is stored', async (stored) => {
    const ways = new ServerWays(memoryStorage(stored), keptLog());
    await ways.refresh();
    expect(ways.of('here', 'a')).toEqual({ refused: [], mostTools: null, told: null, learnt: null });
  });

  test('works on, and says so, where nothing can be read or written', async () => {
    const log = keptLog();
    const broken = () => Promise.reject(new Error('disk full'));
    const ways = new ServerWays({ load: broken, replace: broken }, log);
    await ways.change('here', 'a', tools);
    await ways.refresh();
    expect(ways.of('here', 'a').refused).toEqual(['tools']);
    expect(log.lines.join()).toContain('disk full');
  });
});
