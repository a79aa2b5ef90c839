/** SKILL.md: what makes a skill, what breaks one, and where it says it can be used. */
import { describe, expect, it } from 'vitest';
import { bundleOf } from '../../src/skills/bundle.js';

const NAMED = 'name: pdf\ndescription: Reads PDF files.';
const file = (matter: string, body = 'Do it.') => `---\n${matter}\n---\n\n${body}\n`;
const read = (matter: string, body?: string) => {
  const result = bundleOf(file(matter, body), 'folder');
  return result.ok ? result.bundle : result.why;
};
const conditions = (matter: string) => {
  const found = read(`${NAMED}\n${matter}`);
  return typeof found === 'string' ? found : found.conditions;
};
const NONE = { platforms: null, programs: [], anyPrograms: [], variables: [] };

describe('a skill', () => {
  it('has a name, a description and instructions; what else is known of it is passed over', () => {
    const matter = `${NAMED}\nlicense: MIT\ncompatibility: Needs a printer\nallowed-tools: Bash(git:*) Read\nmetadata:\n  author: us\n  version: "1.0"`;
    expect(read(matter, '# PDF\n\n---\n\nmore')).toEqual({
      ...{ name: 'pdf', description: 'Reads PDF files.', body: '# PDF\n\n---\n\nmore', conditions: NONE },
      ...{ loadedBy: 'anybody', remarks: [] },
    });
  });

  it('may come from Windows, with a byte order mark, and without instructions', () => {
    const result = bundleOf(`\uFEFF---\r\n${NAMED.replace('\n', '\r\n')}\r\n---\r\n`, 'x');
    expect(result).toMatchObject({ ok: true, bundle: { name: 'pdf', body: '' } });
    expect(bundleOf(`---\n${NAMED}\n---`, 'x')).toMatchObject({ ok: true, bundle: { body: '' } });
  });

  it('may be described with colons, as many are, over several lines, by a number', () => {
    expect(read('name: a\ndescription: Use this: now, "and" then')).toMatchObject({
      description: 'Use this: now, "and" then',
    });
    expect(read('name: 1password\ndescription: >-\n  one\n  two')).toMatchObject({ description: 'one two' });
    expect(read('name: 7\ndescription: seven')).toMatchObject({ name: '7' });
  });
});

describe('a skill that others made', () => {
  it.each([
    ['none', 'description: b'],
    ['a title', 'name: My Skill\ndescription: b'],
    ['capitals', 'name: PDF\ndescription: b'],
    ['another script', 'name: 天气\ndescription: b'],
    ['what leads out', 'name: ../x\ndescription: b'],
    ['many lines', 'name: "a\\nb"\ndescription: b'],
    ['more than 64 letters', `name: ${'a'.repeat(65)}\ndescription: b`],
    ['a list', 'name: [a]\ndescription: b'],
  ])('has the name of its folder where its own is %s', (_, matter) => {
    expect(read(matter)).toMatchObject({ name: 'folder' });
  });

  it('is refused where that is no name, either', () => {
    for (const folder of ['a\nb', 'x'.repeat(65), ' ', 'a\u202eb']) {
      const result = bundleOf(file('name: PDF\ndescription: b'), folder);
      expect(result).toEqual({ ok: false, why: expect.stringContaining('neither its name nor') });
    }
    expect(bundleOf(file('description: b'), 'Cafe\u0301 Müller')).toMatchObject({
      bundle: { name: 'Café Müller' },
    });
  });

  it('has a description of up to 1,024 characters; a longer one is cut, and told', () => {
    expect(read(`name: a\ndescription: ${'b'.repeat(1_024)}`)).toMatchObject({
      ...{ description: 'b'.repeat(1_024), remarks: [] },
    });
    expect(read(`name: a\ndescription: ${'b'.repeat(1_025)}`)).toMatchObject({
      description: `${'b'.repeat(1_024)} <<truncated due to skill-description-max-chars=1024>>`,
      remarks: [expect.stringMatching(/has 1025 characters and is cut/)],
    });
  });

  it.each(['clawdbot', 'clawdis', 'moltbot', 'openclaw'])('has its conditions under %s', (key) => {
    const asked = { os: ['darwin'], requires: { bins: ['x'], env: ['Y_1'] } };
    const expected = { platforms: ['darwin'], programs: ['x'], anyPrograms: [], variables: ['Y_1'] };
    expect(conditions(`metadata: ${JSON.stringify({ [key]: asked })}`)).toEqual(expected);
    expect(conditions(`metadata: '${JSON.stringify({ [key]: asked })}'`)).toEqual(expected);
    expect(conditions(`metadata:\n  ${key}: '${JSON.stringify(asked)}'`)).toEqual(expected);
    const lines = JSON.stringify({ [key]: asked }, null, '\t');
    expect(conditions(`metadata: ${lines.slice(0, -1)}\t}`)).toEqual(expected);
  });

  it('names the newest of OpenClaw’s names first', () => {
    const both = { clawdis: { os: ['darwin'] }, openclaw: { os: ['linux'] } };
    expect(conditions(`metadata: ${JSON.stringify(both)}`)).toMatchObject({ platforms: ['linux'] });
  });

  it('asks for settings of OpenClaw, which is told', () => {
    expect(read(`${NAMED}\nmetadata: {"openclaw":{"requires":{"config":["channels.x"]}}}`)).toMatchObject({
      ...{ conditions: NONE, remarks: [expect.stringContaining('channels.x')] },
    });
  });

  it.each([
    ['disable-model-invocation: true', 'people'],
    ['disable-model-invocation: "yes"', 'people'],
    ['disable-model-invocation: false', 'anybody'],
    ['user-invocable: false', 'models'],
    ['user-invokable: off', 'models'],
    ['user-invocable: true', 'anybody'],
  ])('is loaded as it says: %s', (matter, loadedBy) => {
    expect(read(`${NAMED}\n${matter}`)).toMatchObject({ loadedBy });
  });

  it('is broken where nobody may load it', () => {
    expect(read(`${NAMED}\ndisable-model-invocation: true\nuser-invocable: false`)).toMatch(/neither/);
  });
});

describe('is broken', () => {
  it.each([
    ['without front matter', '# PDF', 'it has no front matter between two lines of ---'],
    ['when that is not closed', `---\n${NAMED}\n`, 'it has no front matter between two lines of ---'],
    ['when that is empty', '---\n---\n', 'its front matter has no keys'],
    ['when that is a list', file('- a'), 'its front matter has no keys'],
    ['when that is no YAML', file('name: [a\ndescription: b'), /^its front matter is no YAML: /],
    ['without a description', file('name: a'), 'its front matter has no description'],
    ['with an empty one', file('name: a\ndescription: "  "'), 'its front matter has no description'],
    ['with one that is no text', file('name: a\ndescription: [b]'), 'its front matter has no description'],
    [
      'with a platform that is none',
      file(`${NAMED}\nplatforms: 5`),
      /^platforms in its front matter must be/,
    ],
    [
      'with a variable that is none',
      file(`${NAMED}\nmetadata: {"openclaw":{"requires":{"env":["A B"]}}}`),
      /is no name of a variable$/,
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
    const result = bundleOf(text, 'folder');
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
    ['metadata: {"openclaw":{"requires":{"bins":["uv"],"anyBins":["a","b"]}}}', ['uv'], ['a', 'b']],
    ['metadata: {"openclaw":{"always":true,"requires":{"bins":["uv"],"anyBins":["a"]}}}', [], []],
    ['metadata: {"other":{"requires":{"bins":["uv"]}}}', [], []],
  ])('%s', (matter, programs, anyPrograms) => {
    expect(conditions(matter)).toEqual({ ...NONE, programs, anyPrograms });
  });

  it.each([
    ['{"requires":{"env":["A","B"]}}', ['A', 'B']],
    ['{"requires":{"env":"A, B"}}', ['A', 'B']],
    ['{"always":true,"requires":{"env":["A"]}}', []],
  ])('%s', (openclaw, variables) => {
    expect(conditions(`metadata: {"openclaw":${openclaw}}`)).toEqual({ ...NONE, variables });
  });
});
