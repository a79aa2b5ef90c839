import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';

describe('times in a zone', () => {
  it('are those of the zone, across its changes of the clock', () => {
    const berlin = createZone('Europe/Berlin');
    expect(berlin.time(Date.UTC(2026, 2, 29, 0, 59))).toBe('2026-03-29 01:59');
    expect(berlin.time(Date.UTC(2026, 2, 29, 1, 0))).toBe('2026-03-29 03:00');
    expect(berlin.date(Date.UTC(2026, 10, 21, 23, 30))).toBe('2026-11-22');
    expect(createZone('America/Los_Angeles').date(Date.UTC(2026, 10, 22, 3, 0))).toBe('2026-11-21');
  });

  it('are those of the system where none is named', () => {
    const system = Intl.DateTimeFormat().resolvedOptions().timeZone;
    const zone = createZone(null);
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), (at) => {
        expect(zone.time(at)).toBe(createZone(system).time(at));
      }),
      { numRuns: 50 },
    );
    expect(zone.name).toBe(system);
  });

  it.each(['Europe/Berlin', 'America/St_Johns', 'Asia/Kolkata', ''])(
    'are those of the system where TZ is %j',
    (wished) => {
      const code = `
        const { createZone } = await import(${JSON.stringify(import.meta.resolve('../../dist/modules/core/dates.js'))});
        const zone = createZone(null);
        console.log(JSON.stringify([zone.name, zone.time(${Date.UTC(2026, 6, 1, 20, 45)})]));`;
      const node = ['--input-type=module', '--eval', code];
      const printed = execFileSync(process.execPath, node, { env: { ...process.env, TZ: wished } });
      const [name, time] = JSON.parse(String(printed));
      expect(time).toBe(createZone(wished || 'UTC').time(Date.UTC(2026, 6, 1, 20, 45)));
      const { timeZone } = new Intl.DateTimeFormat('en', { timeZone: wished || 'UTC' }).resolvedOptions();
      expect(name).toBe(timeZone);
    },
  );

  it('are the same however often they are asked for', () => {
    const zone = createZone('Asia/Kathmandu');
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 4e12 }), (at) => {
        expect(zone.time(at)).toBe(createZone('Asia/Kathmandu').time(at));
      }),
      { numRuns: 50 },
    );
  });
});
