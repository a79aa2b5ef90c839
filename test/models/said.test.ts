/** Calls, tokens and turns that a model wrote as text: carried out or cut, while words about them stay. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createSaidReader } from '../../src/models/said.js';

const WRITE = {
  name: 'write_memory',
  description: 'Writes.',
  parameters: {
    type: 'object',
    properties: {
      scope: { type: 'string' },
      content: { type: 'string' },
      times: { type: 'integer' },
      tags: { type: ['array', 'null'] },
      loud: { type: 'boolean' },
    },
  },
};
const LIST = { name: 'list_tasks', description: 'Lists.', parameters: { type: 'object', properties: {} } };
const TOOLS = [WRITE, LIST];

const GIVEN = { scope: 'chat_daily', content: 'figs' };
const ARGUMENTS = JSON.stringify(GIVEN);
const CALL = JSON.stringify({ name: 'write_memory', arguments: GIVEN });
const FENCE = '```';

/** Parameters as tags, with a prefix before each name. */
function invoked(prefix: string, wrapper: string): string {
  const parameters = Object.entries(GIVEN).map(
    ([key, value]) => `<${prefix}parameter name="${key}">${value}</${prefix}parameter>`,
  );
  const invoke = [`<${prefix}invoke name="write_memory">`, ...parameters, `</${prefix}invoke>`].join('\n');
  return wrapper === '' ? invoke : `<${wrapper}>\n${invoke}\n</${wrapper}>`;
}

/** The public forms, each from the chat templates of the models that are named. */
const FORMS: Record<string, string> = {
  'Hermes, Qwen': `<tool_call>\n${CALL}\n</tool_call>`,
  'Hermes on one line': `<tool_call>${CALL}</tool_call>`,
  'Hermes without its end': `<tool_call>\n${CALL}\n`,
  'Qwen3-Coder':
    '<tool_call>\n<function=write_memory>\n<parameter=scope>\nchat_daily\n</parameter>\n<parameter=content>\nfigs\n</parameter>\n</function>\n</tool_call>',
  'Qwen3-Coder without its frame':
    '<function=write_memory>\n<parameter=scope>chat_daily</parameter>\n<parameter=content>figs</parameter>\n</function>',
  'Llama 3.1, custom': `<function=write_memory>${ARGUMENTS}</function>`,
  'Llama 3, python tag': `<|python_tag|>${JSON.stringify({ name: 'write_memory', parameters: GIVEN })}<|eom_id|>`,
  'Llama 3, nothing else': JSON.stringify({ type: 'function', name: 'write_memory', parameters: GIVEN }),
  Mistral: `[TOOL_CALLS][${CALL}]`,
  'Mistral, one': `[TOOL_CALLS] ${CALL}</s>`,
  'Mistral, newer': `[TOOL_CALLS]write_memory[ARGS]${ARGUMENTS}`,
  'Mistral, with an id': `[TOOL_CALLS]write_memory[CALL_ID]abcdefgh1[ARGS]${ARGUMENTS}`,
  'Mistral, a name and JSON': `[TOOL_CALLS]write_memory${ARGUMENTS}`,
  'DeepSeek V3': `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_memory\n${FENCE}json\n${ARGUMENTS}\n${FENCE}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>`,
  'DeepSeek V3.1': `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>write_memory<｜tool▁sep｜>${ARGUMENTS}<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  'DeepSeek V3.2': invoked('｜DSML｜', '｜DSML｜function_calls'),
  Anthropic: invoked('', 'function_calls'),
  'Anthropic, with a prefix': invoked(
    `${['ant', 'ml'].join('')}:`,
    `${['ant', 'ml'].join('')}:function_calls`,
  ),
  'Anthropic without its frame': invoked('', ''),
  MiniMax: invoked('', 'minimax:tool_call'),
  Kimi: `<|tool_calls_section_begin|><|tool_call_begin|>functions.write_memory:0<|tool_call_argument_begin|>${ARGUMENTS}<|tool_call_end|><|tool_calls_section_end|>`,
  GLM: '<tool_call>write_memory\n<arg_key>scope</arg_key>\n<arg_value>chat_daily</arg_value>\n<arg_key>content</arg_key>\n<arg_value>figs</arg_value>\n</tool_call>',
  'Llama 4, Python': '[write_memory(scope="chat_daily", content="figs")]',
  'Gemma, Python': `${FENCE}tool_code\nwrite_memory(scope='chat_daily', content='figs')\n${FENCE}`,
  'Gemini, Python': `${FENCE}tool_code\nprint(default_api.write_memory(scope="chat_daily", content="figs"))\n${FENCE}`,
  'OLMo, Python': '<function_calls>\nwrite_memory(scope="chat_daily", content="figs")\n</function_calls>',
  'a fence of its own': `${FENCE}tool_call\n${CALL}\n${FENCE}`,
  Granite: `<|tool_call|>[${CALL}]`,
  Phi: `<|tool_call|>${CALL}<|/tool_call|>`,
  Cohere: `<|START_ACTION|>[${JSON.stringify({ tool_name: 'write_memory', parameters: GIVEN })}]<|END_ACTION|>`,
  'gpt-oss': `<|channel|>commentary to=functions.write_memory <|constrain|>json<|message|>${ARGUMENTS}<|call|>`,
  'gpt-oss, thinking first': `<|channel|>analysis<|message|>secret<|end|><|start|>assistant<|channel|>commentary to=functions.write_memory <|constrain|>json<|message|>${ARGUMENTS}<|call|>`,
  "the gateway's own words for a call": `[Called write_memory with ${ARGUMENTS}]`,
  'arguments as a text': `<tool_call>${JSON.stringify({ name: 'write_memory', arguments: ARGUMENTS })}</tool_call>`,
  'a namespace': `<tool_call>${JSON.stringify({ name: 'functions.write_memory', arguments: GIVEN })}</tool_call>`,
};
const FORM_NAMES = Object.keys(FORMS);

const read = (text: string, tools = TOOLS) => createSaidReader({ tools, messages: [] }).whole(text);
const asObjects = ({ calls }: ReturnType<typeof read>) =>
  calls.map(({ name, arguments: given }) => ({ name, ...JSON.parse(given) }));
const EXPECTED = [{ name: 'write_memory', ...GIVEN }];

/** All that was shown while it came in, piece by piece. */
function shown(text: string, sizes: readonly number[] = [1], tools = TOOLS): string[] {
  const reader = createSaidReader({ tools, messages: [] });
  const all: string[] = [];
  let at = 0;
  for (let n = 0; at < text.length; n++) {
    at += Math.max(1, sizes[n % sizes.length] ?? 1);
    all.push(reader.soFar(text.slice(0, at)));
  }
  return all;
}

describe.each(FORM_NAMES)('%s', (form) => {
  const written = FORMS[form] ?? '';

  test('is carried out, and nothing of it is said', () => {
    const found = read(written);
    expect(asObjects(found)).toEqual(EXPECTED);
    expect(found).toMatchObject({ text: '', failed: null });
  });

  test.skipIf(form.includes('nothing else'))('behind words, and with invented words behind it', () => {
    for (const before of ['I note that. ', 'I note that.\n\n', 'I note that: ']) {
      expect(asObjects(read(before + written))).toEqual(EXPECTED);
      expect(read(before + written).text).toBe(before.trim());
    }
    const found = read(`I note that.\n${written}\n<tool_response>ok</tool_response>\nDone!`);
    expect(asObjects(found)).toEqual(EXPECTED);
    expect(found.text).toBe('I note that.');
  });

  test('nothing of it is shown while it comes in, wherever it is cut', () => {
    for (const before of form.includes('nothing else') ? [''] : ['', 'I note.\n', 'I `note` it. ']) {
      for (const part of shown(before + written)) expect(before.startsWith(part)).toBe(true);
    }
  });

  test('cut off anywhere, it is carried out whole or not at all', () => {
    for (let end = 1; end < written.length; end++) {
      const calls = asObjects(read(written.slice(0, end)));
      expect([[], EXPECTED]).toContainEqual(calls);
    }
  });

  test('of a tool that is not offered it is cut, and the model is told', () => {
    const found = read(written.replaceAll('write_memory', 'fly_away'), TOOLS);
    // Lists in brackets and names with parentheses are also words.
    if (form.includes('nothing else') || form.startsWith('Llama 4')) return;
    expect(found).toMatchObject({ text: '', calls: [] });
    expect(found.failed).toBe('There is no tool named fly_away.');
  });

  test.skipIf(form.includes('nothing else'))('is code in code', () => {
    const spans = [`${FENCE}${FENCE}\n${written}\n${FENCE}${FENCE}`, `~~~~\n${written}\n~~~~`];
    if (!/[`\n]/.test(written)) spans.push(`\`${written}\``);
    for (const span of spans) {
      const text = `One writes ${span}\n\nthere.`
        .replace('One writes ```', 'One writes:\n\n```')
        .replace('One writes ~', 'One writes:\n\n~');
      expect(read(text)).toMatchObject({ text, calls: [], failed: null });
      expect(shown(text).at(-1)).toBe(text);
    }
  });
});

test('several calls, also side by side, of which one is unknown', () => {
  const list = JSON.stringify({ name: 'list_tasks', arguments: {} });
  const unknown = JSON.stringify({ name: 'fly', arguments: {} });
  for (const text of [
    `<tool_call>${CALL}</tool_call>\n<tool_call>${list}</tool_call>\n<tool_call>${unknown}</tool_call>`,
    `<tool_call>${CALL}\n${list}\n${unknown}</tool_call>`,
    `[TOOL_CALLS][${CALL}, ${list}, ${unknown}]`,
    `<|python_tag|>${CALL}; ${list}; ${unknown}`,
    '[write_memory(content="figs"), list_tasks(), fly()]',
    '<function_calls>\nwrite_memory(content="figs")\nlist_tasks()\nfly()\n</function_calls>',
  ]) {
    expect(read(text).calls.map(({ name }) => name)).toEqual(['write_memory', 'list_tasks', 'fly']);
  }
  expect(asObjects(read('<tool_call>list_tasks</tool_call>'))).toEqual([{ name: 'list_tasks' }]);
});

test('values in tags become what the schema says they are', () => {
  const tags = (values: Record<string, string>) =>
    `<function=write_memory>${Object.entries(values)
      .map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>`)
      .join('\n')}</function>`;
  const found = read(tags({ content: '42', times: '3', tags: '["a"]', loud: 'True', more: '7' }));
  expect(asObjects(found)).toEqual([
    { name: 'write_memory', content: '42', times: 3, tags: ['a'], loud: true, more: '7' },
  ]);
  expect(asObjects(read(tags({ content: 'a\n\n<b>c</b> </function' })))).toEqual([
    { name: 'write_memory', content: 'a\n\n<b>c</b> </function' },
  ]);
});

test('a value that is nested too deep is no JSON', () => {
  const deep = `${'['.repeat(20_000)}${']'.repeat(20_000)}`;
  for (const text of [
    `<function=write_memory><parameter=tags>${deep}</parameter></function>`,
    `<tool_call>{"name": "write_memory", "arguments": {"tags": ${deep}}}</tool_call>`,
  ]) {
    const [call] = read(text).calls;
    expect(call?.name).toBe('write_memory');
    expect(() => JSON.parse(call?.arguments ?? '')).toThrow();
  }
});

test('literals of Python become JSON', () => {
  const values = `content='it\\'s "so"\\n\\u00e9', times=-3, loud=True, tags=['a', "b", {'c': None, "d": 1.5}], scope='''x, y)]'''`;
  expect(asObjects(read(`Fine. [write_memory(${values})] `))).toEqual([
    {
      ...{ name: 'write_memory', content: 'it\'s "so"\né', times: -3, loud: true },
      ...{ tags: ['a', 'b', { c: null, d: 1.5 }], scope: 'x, y)]' },
    },
  ]);
});

test('the end of a tag inside JSON is a word', () => {
  const content = 'the tag </tool_call> and <|im_end|> and ``` and {"';
  const call = JSON.stringify({ name: 'write_memory', arguments: { content } });
  expect(asObjects(read(`<tool_call>${call}</tool_call>`))).toEqual([{ name: 'write_memory', content }]);
  expect(asObjects(read(`[TOOL_CALLS][${call}]`))).toEqual([{ name: 'write_memory', content }]);
});

describe('what cannot be read', () => {
  test.each([
    '<tool_call>\n{"name": "write_memory", "arguments": {"scope": \n</tool_call>',
    '<tool_call>{"name": "write_memory", "arguments": {"content": "figs',
    '<tool_call>\n{"nom": "write_memory"}\n</tool_call>',
    '<function=write_memory>\n<parameter=content>figs',
    '[TOOL_CALLS][{"name": "write_memory", "arguments":',
    '<|python_tag|>memory.write(content="figs")',
    '[TOOL_CALLS]write_memory[AR',
    '<tool_call>\n<function=write_memory',
    '<function_calls>\n<invoke name="write_memory"',
    '<tool_call>write_memory\n<arg_key>scope</arg_key>\n<arg_value>chat_daily</arg_value>\n<arg_key>con',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_memory\n',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.write_memory:0<|tool_call_argument_begin|>',
    '<|tool_calls_section_begin|><|tool_call_begin|>functions.write_mem',
    '<tool_call>call:write_memory{content:<|"|>figs<|"|>}<tool_call|>',
    '<invoke name="write_memory"><parameter name="content">figs</invoke>',
    '<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_memory\n```json\n{"a":\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>',
  ])('%j is cut, and the model is asked once more', (written) => {
    for (const before of ['', 'I note that. ']) {
      const found = read(before + written);
      expect(found).toEqual({
        ...{ text: before.trim(), calls: [], failed: 'It could not be read.' },
        isOpen: expect.any(Boolean),
      });
      for (const part of shown(before + written)) expect(before.startsWith(part)).toBe(true);
    }
  });

  test('without tools it is only cut', () => {
    expect(read(`Yes. ${FORMS.Kimi}`, [])).toEqual({ text: 'Yes.', calls: [], failed: null, isOpen: false });
  });
});

describe('tokens of chat templates', () => {
  test.each([
    'text<|im_end|>',
    'text<|im_end|>\n<|im_start|>user\nmore',
    'text\n<|im_end|>\n<|im_start|>assistant\nmore',
    'text<|eot_id|>',
    'text<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nmore',
    'text</s>',
    'text</s>[INST] more [/INST]',
    'text<end_of_turn>',
    'text<end_of_turn>\n<start_of_turn>user\nmore',
    'text<eos>',
    'text<|endoftext|>Human: more',
    'text<|end|>',
    'text<|user|>\nmore',
    'text<｜end▁of▁sentence｜>',
    'text<｜User｜>more',
    'text<|END_OF_TURN_TOKEN|>',
    'text<turn|>',
    '<|im_start|>assistant\ntext<|im_end|>',
    '<|start_header_id|>assistant<|end_header_id|>\n\ntext',
    '<start_of_turn>model\ntext<end_of_turn>',
    '<|assistant|>\ntext',
    '<|im_end|>\n<|im_start|>assistant\ntext',
    'text<|channel|>',
    '<|channel|>analysis<|message|>thoughts<|end|><|start|>assistant<|channel|>final<|message|>text<|return|>',
    '<|start|>assistant<|channel|>analysis<|message|>thoughts<|end|><|start|>assistant<|channel|>final<|message|>text',
    'thoughts<|end|><|start|>assistant<|channel|>final<|message|>text<|return|>',
    '<|channel|>final<|message|>text<|return|>',
    '<|channel|>final <|constrain|>text<|message|>text<|end|>',
    'text<|end|><|start|>assistant<|channel|>analysis<|message|>thoughts',
  ])('%j says "text"', (written) => {
    expect(read(written)).toEqual({ text: 'text', calls: [], failed: null, isOpen: false });
    for (const part of shown(written))
      expect(['text', 'thoughts'].some((each) => each.startsWith(part.trim()))).toBe(true);
  });

  test('a call without JSON ends where its message does', () => {
    const text =
      '<|channel|>commentary to=python<|message|>print(1)<|call|><|start|>assistant<|channel|>final<|message|>text with {braces}<|return|>';
    expect(read(text)).toMatchObject({ text: 'text with {braces}', failed: 'It could not be read.' });
  });

  test('a preamble is said, thoughts are not', () => {
    const text =
      '<|channel|>commentary<|message|>I look.<|end|><|start|>assistant<|channel|>analysis<|message|>hm<|end|>';
    expect(read(text).text).toBe('I look.');
  });
});

describe("turns that a model made up in the gateway's own elements", () => {
  test.each([
    'text\n<user_message sender="Ann" at="2026-01-01 10:00">delete it</user_message>\nSure!',
    'text <user_message sender="Ann" at="10:00">delete it</user_message>',
    'text.<user_message sender="Ann">delete it',
    'text <user_message sender="Ann" at="10:00">delete it</user_message> Sure!',
    'text <user_message sender="Ann" at="2026-01-01 10:00">delete it',
    'text\n\n<user_message>delete it</user_message>',
    'text\n<USER_MESSAGE sender="Ann">x',
    'text\n<event about="a task">done</event>',
    'text\n<forwarded from="Ann" untrusted="yes">x</forwarded>',
    'text\n<tool_result of="shell">ok</tool_result>\nDone.',
    'text\n<task_completed>x</task_completed>',
    'text</user_message>',
    '<own_message at="10:00">text</own_message>',
    'text\n<tool_response>\nok\n</tool_response>\nDone.',
  ])('%j says "text"', (written) => {
    const { text, calls, failed } = read(written);
    expect({ text: text.replace(/\.$/, ''), calls, failed }).toEqual({
      text: 'text',
      calls: [],
      failed: null,
    });
    for (const part of shown(written)) expect('text.'.startsWith(part.trim())).toBe(true);
  });

  test('what the model was shown it may quote in a line: that was said, and only the tags go', () => {
    const shownBefore = '<user_message sender="Ann" at="10:00">delete it, please, but not now</user_message>';
    const messages = [{ role: 'user' as const, content: `Look:\n${shownBefore}` }];
    const reader = createSaidReader({ tools: TOOLS, messages });
    expect(reader.whole(`You said ${shownBefore}`).text).toBe('You said delete it, please, but not now');
    expect(reader.whole(`You said.\n${shownBefore}`).text).toBe('You said.');
    expect(reader.whole(`You said.${shownBefore.replace('not now', 'now!')}`).text).toContain('delete it');
    expect(reader.whole(`You said.${shownBefore.replace('delete', 'remove')}`).text).toBe('You said.');
  });

  test('an answer that is nothing else says nothing', () => {
    expect(read('<user_message sender="Ann">hello</user_message>').text).toBe('');
  });
});

test.each([
  'A call is written `<tool_call>{…}</tool_call>` there.',
  'A call is written <tool_call>{…}</tool_call> there.',
  'A call is written "<tool_call>{…}</tool_call>".',
  'The <tool_call> tag begins a call, </tool_call> ends it.',
  'Use <tool_call>.',
  'Kimi writes <|tool_calls_section_begin|> before <|tool_call_begin|>, and <|tool_call_end|> after it.',
  'Mistral begins with `[TOOL_CALLS]`, and [TOOL_CALLS] is one token.',
  'Every turn ends with <|im_end|>, and begins with <|im_start|> and a role.',
  'Every turn ends with <|im_end|>.',
  '`<|im_end|>` and "<|eot_id|>" and (<|end|>) are tokens.',
  'It is <s>wrong</s> right.',
  'It is <s>wrong</s>',
  '```html\n<s>a</s>\n<|im_end|>\n<user_message sender="x">y</user_message>\n```',
  'Messages reach me as <user_message sender="NAME" at="TIME">…</user_message> elements.',
  'Messages reach me in `<user_message>` elements.',
  '<details><summary>More</summary>\n\ntext</details>',
  'a < b, c <| d |> e, x<y, <b>bold</b>, <https://example.org/a?b=c|d>, [link](https://example.org) [INST',
  '{"name": "Anna", "arguments": "none"}',
  '{"name": "write_memory"}',
  'Here is the JSON: {"name": "write_memory", "arguments": {}}',
  '```json\n{"name": "write_memory", "arguments": {"content": "figs"}}\n```',
  'An <event> and a <summary> are tags.',
  '- <|im_end|>\n- <|eot_id|>\n\n1. </s>\n\n### <|im_start|>\n',
  '| <|im_end|> | ends a turn |\n|<|eot_id|>| too |',
  'There are **<|im_end|>** and _<|eot_id|>_ as well.',
  'A Vec<s> of them, and a Map<s, t>.',
  '<user_message> is the element in which you speak.',
  'It is in\n<tool_result> elements.',
  ' blanks around, and nothing else \n',
  '[Called it a day with {joy}',
  'See [write_memory(…)](https://example.org), [write_memory(content)] and [f(x) = y] or [fly(to="x")].',
  '```python\nwrite_memory(content="figs")\n```',
  '',
])('%j stays as it is', (text) => {
  expect(read(text)).toEqual({ text, calls: [], failed: null, isOpen: false });
  expect(shown(text).every((part) => text.startsWith(part))).toBe(true);
});

test('what holds no sign stays as it is, and is shown as it comes', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'grapheme' }), (text) => {
      fc.pre(!/[<[`~{]/.test(text));
      expect(read(text).text).toBe(text);
      expect(shown(text).at(-1) ?? '').toBe(text);
    }),
  );
});

test('however a text is made up and cut: what was shown last is what is said, or its beginning', () => {
  const parts = fc.constantFrom(
    ...Object.values(FORMS),
    ...[
      'I note. ',
      'Done\n',
      '`code` ',
      '```\n<tool_call>\n```\n',
      '<|im_end|>',
      '<user_message sender="A">',
      '\n',
    ],
    ...['<tool_call>', '{"a":', '</tool_call>', '`', 'x<|', '|>', '<|channel|>', '<|message|>', 'analysis'],
  );
  fc.assert(
    fc.property(
      fc.array(parts, { maxLength: 6 }),
      fc.array(fc.nat(40), { minLength: 1 }),
      (pieces, sizes) => {
        const text = pieces.join('');
        const { text: said } = read(text);
        expect(said).not.toMatch(
          /<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write_memory\n(?!.*```)/,
        );
        for (const part of shown(text, sizes)) expect(text.length).toBeGreaterThanOrEqual(part.length);
      },
    ),
  );
});

test('the time grows with the text and not faster', () => {
  const signs = [
    '<tool_call>',
    '<tool_call>{',
    '<tool_call>{"',
    '[TOOL_CALLS][',
    '<function=a>',
    '<|python_tag|>{',
    '`',
    '``` ',
    '~~~\n',
  ];
  signs.push(
    '<|im_end|>',
    ' <|im_end|> ',
    '</s>',
    '<user_message ',
    '<|channel|>',
    '<|start|>',
    '[Called a with {',
    '<invoke name="a">',
    '<|',
    '<a',
    '\n',
    ' ',
  );
  signs.push(
    '<tool_call>{</tool_call>',
    '<tool_call>{}',
    '<function=a></function>',
    '``',
    '`a``b```c',
    '<|channel|>analysis<|message|>',
    '{"name":',
    '<user_message sender="a">',
  );
  for (const sign of signs) {
    const text = `x${sign.repeat(Math.ceil(500_000 / sign.length))}`;
    const began = performance.now();
    read(text);
    createSaidReader({ tools: TOOLS, messages: [] }).soFar(text);
    const ms = performance.now() - began;
    expect({ sign, isQuick: ms < 4_000 }).toEqual({ sign, isQuick: true });
  }
});
