/** Which names people, and models, take for one another. */
import { describe, expect, it } from 'vitest';
import { looksLike } from '../../src/core/likeness.js';

describe('a name looks like another', () => {
  it.each([
    ['default', 'dеfault'], // a Cyrillic е
    ['default', 'ＤＥＦＡＵＬＴ'],
    ['default', '𝐝𝓮𝖋𝚊𝕦𝗅𝑡'],
    ['default', 'd\u0435\u0301fault'],
    ['default', 'de\u200bfau\u00adlt'],
    ['default', 'defau1t'],
    ['default', 'defauIt'],
    ['default', 'defau|t'],
    ['default', 'ⅾefault'],
    ['Luna', 'LUNA'],
    ['Luna', '\u202eLuna\u202c'],
    ['Luna', 'Luná'],
    ['Luna', '  Luna… '],
    ['Luna', 'Ⅼuna'],
    ['luna', 'Iuna'],
    ['Marlow', 'rnarlow'],
    ['Marlow', 'Μаrlοw'], // Greek, Cyrillic, Greek
    ['Marlow', 'Mаrlоԝ'],
    ['Bob', 'B0b'],
    ['Bjorn', 'Bjørn'],
    ['Dr. Luna', 'dr luna'],
    ['sage', 'ѕаgе'],
    ['Juno', 'Jսոօ'], // Armenian
    ['Карл', 'Kарл'], // a Latin K
  ])('%s: %s', (name, other) => {
    expect(looksLike(name, other)).toBe(true);
    expect(looksLike(other, name)).toBe(true);
  });

  it.each([
    ['李明', '李华'],
    ['小月', '小明'],
    ['नीला', 'नाला'],
    ['かな', 'がな'],
    ['سارا', 'هارا'],
    ['Галя', 'Уаля'],
    ['Вера', 'Бера'],
    ['Иван', 'Ирина'],
    ['Σοφία', 'Ζωή'],
    ['Νίκη', 'Νίκος'],
    ['Luna', 'Lena'],
    ['Ann A', 'Anna'],
    ['Sage', 'Page'],
    ['Bot 1', 'Bot 2'],
    ['민수', '민지'],
    ['Արամ', 'Արեն'],
    ['דוד', 'דור'],
    ['😀', '🎉'],
    ['', ''],
  ])('and not: %s, %s', (name, other) => {
    expect(looksLike(name, other)).toBe(false);
  });
});
