import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isPersonaId, isReserved, slug } from '../../src/groups/paths.js';

describe('slug', () => {
  it('keeps letters and digits of any script, everything else becomes one dash', () => {
    expect(slug('Luna')).toBe('luna');
    expect(slug('  Dr. Über -- Test!  ')).toBe('dr-über-test');
    expect(slug('小月')).toBe('小月');
    expect(slug('नीला')).toBe('नीला');
    expect(slug('Ｌｕｎａ２')).toBe('luna2');
    expect(slug('../x')).toBe('x');
    expect(slug('@luna')).toBe('luna');
  });

  it('leaves nothing of a name without letters', () => {
    for (const name of ['', '😀', '❤️', '../..', ' ', '\u200b', '\u0301']) expect(slug(name)).toBe('');
  });

  it('is at most 60 bytes of whole characters', () => {
    expect(slug('a'.repeat(300))).toBe('a'.repeat(60));
    expect(slug('月'.repeat(30))).toBe('月'.repeat(20));
    expect(slug(`${'a'.repeat(59)}月`)).toBe('a'.repeat(59));
    expect(slug(`${'a'.repeat(59)} b`)).toBe('a'.repeat(59));
  });

  it('is its own slug, and one safe folder name', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), (name) => {
        const id = slug(name);
        expect(slug(id)).toBe(id);
        expect(id).not.toMatch(/[/\\.\p{Cc}\s]/u);
        expect(Buffer.byteLength(id)).toBeLessThanOrEqual(60);
        expect(isPersonaId(id)).toBe(id !== '' && !isReserved(id));
      }),
      { numRuns: 2000 },
    );
  });

  it('knows what may be a folder of a persona', () => {
    for (const id of ['', 'memory', 'archive', '../x', 'Luna', 'a b', '.'])
      expect(isPersonaId(id)).toBe(false);
    expect(isPersonaId('default')).toBe(true);
  });
});
