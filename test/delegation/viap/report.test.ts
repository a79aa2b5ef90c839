/** The report of VIAP v3: where it stands in an answer, and what is none. */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { failureReport, readReport, repairRequest } from '../../../src/delegation/viap/report.js';
import { LEAST_REPORT, REPORT_TEXT, TASK_ID, taskOf } from './fixtures.js';

const text = JSON.stringify(LEAST_REPORT);
const reasonOf = (answer: string) => {
  const read = readReport(answer, 't:1/2');
  return read.ok ? null : read.reason;
};

describe('a report', () => {
  it('is read as the seed writes it', () => {
    const read = readReport(REPORT_TEXT, TASK_ID);
    expect(read).toEqual({ ok: true, report: JSON.parse(REPORT_TEXT) });
    expect(read.ok && Object.keys(read.report)).toEqual(Object.keys(JSON.parse(REPORT_TEXT)));
  });

  it.each([
    ['bare', text],
    ['in a fence', `\`\`\`json\n${text}\n\`\`\``],
    ['in a plain fence', `\`\`\`\n${JSON.stringify(LEAST_REPORT, null, 2)}\n\`\`\`\nThat is it.`],
    ['in prose', `All went well, see: ${text} – anything else?`],
    ['behind other JSON', `{"a": 1}\n\`\`\`json\n{"b": {"c": 2}}\n\`\`\`\n${text}`],
    ['in an object', `{"report": ${text}}`],
    ['twice the same', `${text}\n\nAgain:\n\`\`\`json\n${JSON.stringify(LEAST_REPORT, null, 2)}\n\`\`\``],
    [
      'twice, in another order',
      `${text} ${JSON.stringify(Object.fromEntries(Object.entries(LEAST_REPORT).reverse()))}`,
    ],
    ['behind one that was begun', `${text.slice(0, 40)}\nno, once more:\n${text}`],
    ['beside its name', `My VIAP_V3_REPORT: ${text} (type VIAP_V3_REPORT)`],
    ['with its version as a number', JSON.stringify({ ...LEAST_REPORT, viap_version: 3 })],
  ])('is found %s', (_, answer) => {
    expect(readReport(answer, 't:1/2')).toMatchObject({ ok: true, report: LEAST_REPORT });
  });

  it.each([
    ['done!', 'There is no VIAP_V3_REPORT in it.'],
    ['', 'There is no VIAP_V3_REPORT in it.'],
    ['{"success": true, "summary": "x"}', 'There is no VIAP_V3_REPORT in it.'],
    [text.slice(0, -5), 'The VIAP_V3_REPORT in it is no valid JSON, or is cut off.'],
    [`${text}\n${text.slice(0, -5)}`, 'The VIAP_V3_REPORT in it is no valid JSON, or is cut off.'],
    [
      `${text} ${JSON.stringify({ ...LEAST_REPORT, success: false })}`,
      'There are 2 reports in it, and they differ: it must be exactly one.',
    ],
    [JSON.stringify({ ...LEAST_REPORT, task_id: 'other' }), "The report's task_id is not that of this task."],
    [
      JSON.stringify({ type: 'VIAP_V3_REPORT', success: 'yes', summary: ' ' }),
      'The report needs viap_version "3", task_id (that of the task), success (true or false), summary (a text).',
    ],
  ])('is not what %s holds', (answer, reason) => {
    expect(reasonOf(answer)).toBe(reason);
  });

  it('puts no host into what its agent is asked again', () => {
    const read = readReport(JSON.stringify({ ...LEAST_REPORT, task_id: 'evil.example' }), TASK_ID);
    expect(read.ok).toBe(false);
    if (!read.ok) expect(repairRequest(read.reason, TASK_ID)).not.toContain('evil.example');
  });

  it('is found in any prose', () => {
    const prose = fc.string().map((words) => words.replaceAll(/[{}[\]":,]/g, ' '));
    const report = fc.record({
      ...Object.fromEntries(Object.entries(LEAST_REPORT).map(([name, value]) => [name, fc.constant(value)])),
      summary: fc.string({ minLength: 1 }).filter((words) => words.trim() !== ''),
      steps: fc.anything(),
      artifacts: fc.anything(),
      metrics: fc.anything(),
      errors: fc.anything(),
      logs: fc.anything(),
      next_actions: fc.anything(),
    });
    fc.assert(
      fc.property(prose, report, prose, (before, given, after) => {
        const written = JSON.stringify(given, (_, value) => (typeof value === 'bigint' ? 1 : value));
        const read = readReport(before + written + after, 't:1/2');
        expect(read).toMatchObject({ ok: true, report: { summary: given.summary } });
      }),
    );
  });

  it('is not found in half of it', () => {
    fc.assert(
      fc.property(fc.nat(text.length - 1), (end) => {
        expect(readReport(text.slice(0, end), 't:1/2').ok).toBe(false);
      }),
    );
  });

  it('keeps of its lists what can be used, within bounds', () => {
    const read = readReport(
      JSON.stringify({
        ...LEAST_REPORT,
        steps: [
          'looked',
          { command: 'ls' },
          { result: 'x' },
          7,
          { what: 'a', command: 'b', cwd: '/c', result: 1 },
        ],
        artifacts: ['a.txt', { path: 'b.txt', sha256: 'no' }, { path: 'c', sha256: 'A'.repeat(64) }, {}],
        errors: ['broken', { message: 'm', stderr_tail: 'e'.repeat(5_000) }, { where: 'w' }],
        next_actions: [1, 'go on', ''],
        metrics: { start_time: 1, duration_sec: 3 },
        logs: { stdout_tail: `${'x'.repeat(3_000)}end`, stderr_tail: '' },
      }),
      't:1/2',
    );
    expect(read).toMatchObject({
      ok: true,
      report: {
        steps: [{ what: 'looked' }, { what: 'ls', command: 'ls' }, { what: 'a', command: 'b', cwd: '/c' }],
        artifacts: [
          { path: 'a.txt', description: '', sha256: null },
          { path: 'b.txt', description: '', sha256: null },
          { path: 'c', description: '', sha256: 'a'.repeat(64) },
        ],
        errors: [
          { where: '', message: 'broken' },
          { where: '', message: 'm', stderr_tail: 'e'.repeat(2_000) },
        ],
        next_actions: ['go on'],
        metrics: { duration_sec: 3 },
        logs: { stdout_tail: `${'x'.repeat(1_997)}end` },
      },
    });
    const many = JSON.stringify({
      ...LEAST_REPORT,
      ...{ summary: 's'.repeat(20_000), next_actions: Array(1_000).fill('again') },
    });
    const long = readReport(many, 't:1/2');
    if (!long.ok) throw new Error(long.reason);
    expect(long.report.next_actions).toHaveLength(300);
    expect(long.report.summary).toMatch(/^s{8000}\n\n<<truncated due to report-max-chars=8000>>$/);
  });

  it('is looked for in two megabytes of braces, in time', () => {
    const started = performance.now();
    for (const piece of ['{', '{"type":"VIAP_V3_REPORT",', '{"a":{"type":"VIAP_V3_REPORT"},']) {
      expect(readReport(piece.repeat(2_000_000 / piece.length), 'x').ok).toBe(false);
    }
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});

describe('without a report', () => {
  it('the agent is asked once more, with what was wrong and the id', () => {
    const asked = repairRequest('There is no VIAP_V3_REPORT in it.', 'a"b');
    expect(asked).toContain('There is no VIAP_V3_REPORT in it.');
    expect(asked).toContain('"task_id": "a\\"b"');
  });

  it('the gateway writes one, with the end of what was said', () => {
    const tail = `${'x'.repeat(3_000)}😀${'y'.repeat(1_999)}`;
    const report = failureReport(taskOf().taskId, 'report_parse', 'No report came.', tail);
    expect(report).toEqual({
      ...LEAST_REPORT,
      ...{
        success: false,
        summary: 'No report came.',
        steps: [],
        artifacts: [],
        metrics: {},
        next_actions: [],
      },
      errors: [{ where: 'report_parse', message: 'No report came.' }],
      logs: { stdout_tail: 'y'.repeat(1_999) },
    });
    expect(readReport(JSON.stringify(report), 't:1/2').ok).toBe(true);
    expect(failureReport(taskOf().taskId, 'timeout', 'm').logs).toEqual({});
  });
});
