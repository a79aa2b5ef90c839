/** What of a server's list personas are offered, and which arguments fit: pure. */
import { describe, expect, it } from 'vitest';
import { checkSchema, offerOf, toolName, wrongArguments } from '../../src/mcp/offered.js';

const SETTINGS = { name: 's', tools: undefined, safe: [] };
const OBJECT = { type: 'object' as const, properties: {} };

describe('a name', () => {
  it.each([
    ['files', 'read_file', 'mcp_files_read_file'],
    ['my files', 'read.file/now', 'mcp_my_files_read_file_now'],
    ['日本', '天気', 'mcp______'],
    ['s', 'x'.repeat(58), `mcp_s_${'x'.repeat(58)}`],
  ])('of %s and %s is %s', (server, own, name) => {
    expect(toolName(server, own)).toBe(name);
  });

  it('that is too long ends with a mark of its own', () => {
    const [one, other] = ['1', '2'].map((end) => toolName('s', 'x'.repeat(80) + end));
    expect(one).toMatch(/^mcp_s_x+_[0-9a-f]{8}$/);
    expect(one).toHaveLength(64);
    expect(one).not.toBe(other);
    expect(toolName('s', `${'x'.repeat(80)}1`)).toBe(one);
  });
});

describe('a list', () => {
  it('of many tools is whole, and only what is wanted of it where that is said', () => {
    const listed = Array.from({ length: 150 }, (_, n) => ({ name: `t${n}`, inputSchema: OBJECT }));
    expect(offerOf(SETTINGS, listed)).toMatchObject({ tools: { length: 150 }, remarks: [] });
    const { tools, remarks } = offerOf({ ...SETTINGS, tools: ['t149'] }, listed);
    expect([tools.map(({ own }) => own), remarks]).toEqual([['t149'], []]);
  });

  it('of many that cannot be offered is told of in part', () => {
    const listed = Array.from({ length: 50 }, (_, n) => ({ name: `t${n}`, inputSchema: { type: 'array' } }));
    const { tools, remarks } = offerOf(SETTINGS, listed);
    expect([tools, remarks.length, remarks.at(-1)]).toEqual([[], 21, 'and 30 more of this kind']);
  });

  it('does not let a tool that is left out stand in for another one', () => {
    const twice = [
      { name: 'go', inputSchema: { type: 'array' } },
      { name: 'go', inputSchema: OBJECT },
    ];
    expect(offerOf(SETTINGS, twice).tools).toEqual([]);
  });

  it('names another tool whenever its words, its schema or its promises are others', () => {
    const print = (tool: object) =>
      offerOf(SETTINGS, [{ name: 'go', inputSchema: OBJECT, ...tool }]).tools[0]?.fingerprint;
    const plain = print({});
    const others = [
      { description: 'x' },
      { annotations: { readOnlyHint: true } },
      { inputSchema: { ...OBJECT, x: 1 } },
    ];
    expect(print({})).toBe(plain);
    for (const tool of others) expect(print(tool)).not.toBe(plain);
  });
});

describe('a schema', () => {
  it('loses what steers and what is long in its words, and keeps what it means', () => {
    const checked = checkSchema({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      $id: 'https://example.com/x',
      type: 'object',
      properties: {
        description: { type: 'string', description: `a\u001b[31m${'x'.repeat(2_000)}`, enum: ['a\u0007'] },
        $ref: { type: 'string', default: { $ref: 'https://example.com' } },
        id: { type: 'string' },
      },
      required: ['description'],
    });
    expect(checked).toEqual({
      schema: {
        type: 'object',
        properties: {
          description: { type: 'string', description: `a[31m${'x'.repeat(995)}`, enum: ['a\u0007'] },
          $ref: { type: 'string', default: { $ref: 'https://example.com' } },
          id: { type: 'string' },
        },
        required: ['description'],
      },
    });
    expect(checkSchema({ type: 'object' })).toEqual({ schema: { type: 'object', properties: {} } });
  });

  it.each([
    { $ref: 'https://example.com/x' },
    { properties: { a: { items: { $ref: 'file:///etc/passwd' } } } },
    { $defs: { a: { $dynamicRef: 'other.json#a' } } },
    { anyOf: [{ $ref: 7 }] },
  ])('that refers to another document is refused: %j', (more) => {
    expect(checkSchema({ type: 'object', ...more })).toEqual({
      wrong: 'its schema refers to another document',
    });
  });
});

describe('arguments', () => {
  const schema = {
    type: 'object' as const,
    properties: {
      path: { type: 'string' },
      lines: { type: ['integer', 'null'] },
      order: { type: 'string', enum: ['up', 'down'] },
      slow: { type: 'string', pattern: '^(a+)+$' },
    },
    required: ['path'],
    additionalProperties: false,
  };

  it.each([
    [{ path: 'a' }, []],
    [{ path: 'a', lines: 3, order: 'up' }, []],
    [{}, ['path: is missing']],
    [{ path: 7 }, ['path: expected string']],
    [{ path: 'a', lines: 1.5 }, ['lines: expected integer or null']],
    [{ path: 'a', order: 'left' }, ['order: expected one of ["up","down"]']],
    [{ path: 'a', more: 1 }, ['more: there is no such argument']],
    [{ path: 'a', slow: `${'a'.repeat(60)}!` }, []],
  ])('%j', (given, wrong) => {
    expect(wrongArguments(schema, given)).toEqual(wrong);
  });

  it('named like what every object has are no more than names', () => {
    const given = JSON.parse('{"__proto__": 1, "constructor": 2}');
    expect(wrongArguments(schema, { path: 'a', ...given })).toHaveLength(2);
    expect(wrongArguments({ type: 'object', required: ['toString'] }, {})).toEqual(['toString: is missing']);
  });
});
