import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { withoutReasoning } from '../../src/models/template-text.js';

describe('reasoning in the text', () => {
  test.each([
    ['<think>hm</think>Tea.', 'Tea.'],
    ['\n <think>\nhm\n</think>\n\nTea.', 'Tea.'],
    ['<THINK>hm</Think>Tea.', 'Tea.'],
    ['<thinking>a <think> b</thinking>Tea.', 'Tea.'],
    ['<think>a</think>\n<think>b</think>Tea.', 'Tea.'],
    ['<think></think>', ''],
    ['<think>never closed', ''],
    ['I should greet.\n\n</think>\n\nHello!', 'Hello!'],
  ])('%j leaves %j', (text, left) => expect(withoutReasoning(text)).toBe(left));

  test.each([
    'The tag `<think>` opens it.',
    'Write\n```\n<think>a</think>\n```\nand done.',
    '```\n<think>a</think>\n```',
    '```\n</think>\n```',
    'It ends with </think> in most templates.',
    'First <think>\n</think>\nthen.',
    ' indented, and nothing else ',
  ])('%j stays', (text) => expect(withoutReasoning(text)).toBe(text));

  test('what holds no tag stays as it is; what follows a closed thought is kept', () => {
    fc.assert(
      fc.property(fc.string(), fc.string({ unit: 'grapheme' }), (thought, said) => {
        fc.pre(!/<\/?think/i.test(thought + said));
        expect(withoutReasoning(said)).toBe(said);
        expect(withoutReasoning(`<think>${thought}</think>${said}`)).toBe(said.trimStart());
        expect(withoutReasoning(`<think>${thought}${said}`)).toBe('');
      }),
    );
  });
});
