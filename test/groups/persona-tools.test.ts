/** Front matter that was written for other programs: what of it holds here, and what is told. */
import { describe, expect, it } from 'vitest';
import { readPersonaFile } from '../../src/groups/persona-file.js';

const read = (matter: string) => readPersonaFile(`---\n${matter}\n---\nText.\n`);

describe('tools', () => {
  it.each([
    ['tools: Read, Write, Bash', null],
    ['tools: [Read, Write]', null],
    ['tools: read', null],
    ['tools: "*"', null],
    ['tools: Bash(git:*), mcp__server__tool', null],
    ['tools: Memory', null],
    ['tools: [Read, web]', ['memory', 'web']],
    ['tools: search, edit', ['memory', 'search']],
    ['tools: [memory, seach]', ['memory']],
  ])('with names unknown here: %j', (matter, tools) => {
    const file = read(matter);
    expect(file.tools).toEqual(tools);
    expect(file.faults).toEqual([expect.stringMatching(/^"tools" names ".*there are only: memory, search,/)]);
  });

  it.each([
    ['tools: [memory, files]', ['memory', 'files']],
    ['tools: memory, files', ['memory', 'files']],
    ['tools: web', ['web']],
    ['tools: []', []],
    ['tools:', null],
    ['tools: ""', null],
  ])('as they are meant here: %j', (matter, tools) => {
    expect(read(matter)).toMatchObject({ tools, faults: [] });
  });

  it.each(['tools: {write: false}', 'tools: [[Read]]', 'tools: true'])('of a wrong kind: %j', (matter) => {
    expect(read(matter)).toMatchObject({ tools: null, faults: ['"tools" should be a list of names'] });
  });

  it('names no more than ten of them', () => {
    const [fault = ''] = read(`tools: [${Array.from({ length: 500 }, (_, n) => `T${n}`).join()}]`).faults;
    expect(fault.length).toBeLessThan(400);
  });
});

describe('other keys', () => {
  it.each([
    ['temperature: warm', { temperature: null, faults: [expect.stringContaining('temperature')] }],
    ['temperature: "0.7"', { temperature: 0.7, faults: [] }],
    ['temperature: ""', { temperature: null, faults: [expect.stringContaining('temperature')] }],
    ['aliases: moon, Luna B', { aliases: ['moon', 'Luna B'], faults: [] }],
    ['aliases: {a: b}', { aliases: null, faults: [expect.stringContaining('aliases')] }],
    ['model: inherit', { model: null, faults: [] }],
    ['name: [x]', { name: null, faults: [expect.stringContaining('name')] }],
    ['color: green\ndescription: for others', { faults: [] }],
  ])('%j', (matter, expected) => {
    expect(read(matter)).toMatchObject(expected);
  });
});
