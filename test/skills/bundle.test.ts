/** SKILL.md: what makes a skill, what breaks one, and where it says it can be used. */
import { describe, expect, it } from 'vitest';
import { bundleOf } from '../../src/skills/bundle.js';

const NAMED = 'name: pdf\ndescription: Reads PDF files.';
const file = (matter: string, body = 'Do it.') => `---\n${matter}\n---\n\n${body}\n`;
const read = (matter: string, body?: string) => {
  const result = bundleOf(file(matter, body));
  return result.ok ? result.bundle : result.why;
};
const conditions = (matter: string) => {
  const found = read(`${NAMED}\n${matter}`);
  return typeof found === 'string' ? found : found.conditions;
};
const NONE = { platforms: null, programs: [], anyPrograms: [] };

describe('a skill', () => {
  it('has a name, a description and instructions; what else is known of it is passed over', () => {
    const matter = `${NAMED}\nlicense: MIT\ncompatibility: Needs a printer\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: us\n  version: "1.0"`;
    expect(read(matter, '# PDF\n\n---\n\nmore')).toEqual({
      ...{ name: 'pdf', description: 'Reads PDF files.', body: '# PDF\n\n---\n\nmore', conditions: NONE },
    });
  });

  it('may come from Windows, with a byte order mark, and without instructions', () => {
    const result = bundleOf(`\uFEFF---\r\n${NAMED.replace('\n', '\r\n')}\r\n---\r\n`);
    expect(result).toMatchObject({ ok: true, bundle: { name: 'pdf', body: '' } });
    expect(bundleOf(`---\n${NAMED}\n---`)).toMatchObject({ ok: true, bundle: { body: '' } });
  });

  it('may be described with colons, as many are, over several lines, by a number', () => {
    expect(read('name: a\ndescription: Use this: now, "and" then')).toMatchObject({
      description: 'Use this: now, "and" then',
    });
    expect(read('name: 1password\ndescription: >-\n  one\n  two')).toMatchObject({ description: 'one two' });
    expect(read('name: 7\ndescription: seven')).toMatchObject({ name: '7' });
  });
});

describe('is broken', () => {
  it.each([
    ['without front matter', '# PDF', 'it has no front matter between two lines of ---'],
    ['when that is not closed', `---\n${NAMED}\n`, 'it has no front matter between two lines of ---'],
    ['when that is empty', '---\n---\n', 'its front matter has no keys'],
    ['when that is a list', file('- a'), 'its front matter has no keys'],
    ['when that is no YAML', file('name: [a\ndescription: b'), /^its front matter is no YAML: /],
    ['without a name', file('description: b'), 'its front matter has no name'],
    ['without a description', file('name: a'), 'its front matter has no description'],
    ['with an empty one', file('name: a\ndescription: "  "'), 'its front matter has no description'],
    ['with one that is no text', file('name: a\ndescription: [b]'), 'its front matter has no description'],
    [
      'with one that is too long',
      file(`name: a\ndescription: ${'b'.repeat(1_025)}`),
      /^its description has 1025/,
    ],
    ['with a name of capitals', file('name: PDF\ndescription: b'), /^its name must be lower-case/],
    ['with a name that leads out', file('name: ../x\ndescription: b'), /^its name must be lower-case/],
    ['with a name of many lines', file('name: "a\\nb"\ndescription: b'), /^its name must be lower-case/],
    ['with a name that is too long', file(`name: ${'a'.repeat(65)}\ndescription: b`), /^its name must be/],
    [
      'with a platform that is none',
      file(`${NAMED}\nplatforms: 5`),
      /^platforms in its front matter must be/,
    ],
    ['with a program that is a path', file(`${NAMED}\ndeps: [../../bin/sh]`), /is no name of a program$/],
    [
      'with metadata that is half JSON',
      file(`${NAMED}\nmetadata: '{"openclaw": {'`),
      'its metadata is no JSON',
    ],
    [
      'with aliases upon aliases',
      file(
        `a: &a [x]\nb: &b [${Array(60).fill('*a').join()}]\nc: &c [${Array(60).fill('*b').join()}]\nd: [${Array(60).fill('*c').join()}]\n${NAMED}`,
      ),
      /^its front matter is no YAML/,
    ],
  ])('%s', (_, text, why) => {
    const result = bundleOf(text);
    expect(result.ok).toBe(false);
    if (!result.ok) expect(result.why).toMatch(why);
  });
});

describe('conditions', () => {
  it.each([
    ['platforms: [linux, macOS]', ['linux', 'darwin']],
    ['platforms: linux, windows', ['linux', 'win32']],
    ['platforms: [all]', null],
    ['platforms: "*"', null],
    ['platforms: []', null],
    ['os: darwin', ['darwin']],
    ['os: [plan9]', ['plan9']],
    ['compatibility:\n  os: [osx]', ['darwin']],
    ['metadata: {"openclaw":{"os":["darwin","linux"]}}', ['darwin', 'linux']],
    [`metadata: '{"openclaw":{"os":["win32"]}}'`, ['win32']],
    ['metadata:\n  openclaw:\n    os: [linux]', ['linux']],
    ['metadata:\n  {\n    "openclaw":\n      {\n        "os": ["linux"],\n      },\n  }', ['linux']],
    ['platforms: [linux, darwin]\nos: [linux]', ['linux']],
    ['platforms: [linux]\nos: [darwin]', []],
    ['metadata: {"openclaw":{"os":["constructor"]}}', ['constructor']],
  ])('%s', (matter, platforms) => {
    expect(conditions(matter)).toEqual({ ...NONE, platforms });
  });

  it.each([
    ['deps: [git, rg]', ['git', 'rg'], []],
    ['deps: git, rg', ['git', 'rg'], []],
    ['compatibility:\n  deps: [git]', ['git'], []],
    ['metadata: {"openclaw":{"requires":{"bins":["uv"],"anyBins":["a","b"]}}}', ['uv'], [['a', 'b']]],
    ['metadata: {"openclaw":{"always":true,"requires":{"bins":["uv"],"anyBins":["a"]}}}', [], []],
    ['metadata: {"other":{"requires":{"bins":["uv"]}}}', [], []],
  ])('%s', (matter, programs, anyPrograms) => {
    expect(conditions(matter)).toEqual({ ...NONE, programs, anyPrograms });
  });
});
