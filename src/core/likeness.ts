/**
 * Letters that look like others, for comparing names as people read them: each row is what they look like, then those
 * that do. From confusables.txt of Unicode Technical Standard #39, version 17.0.0 (© 1991-2025 Unicode, Inc., Unicode
 * License V3, https://www.unicode.org/license.txt), of which it keeps, without accents, the letters and digits of Latin,
 * Greek, Cyrillic, Armenian, Coptic, Cherokee and Lisu that compatibility normalisation leaves apart; but not those that
 * would make one of two names in the same script (σ and ο, գ and զ, ռ and ո). Data alone.
 */
const CONFUSABLES = [
  '2 ƧƻϨꙄꝚ, 3 ƷȜЗӠⲜⳄⳌꝪꞫ, 4 Ꮞ, 5 Ƽ, 6 ϬбᏮⳒⳓⳜ, 8 Ȣȣ, 9 ⳊⳋꝮ, A ΑАᎪꓮ, AA Ꜳ, AE ÆӔ, AO Ꜵ, AU Ꜷ, AV ꜸꜺ, AY Ꜽ',
  'B ΒВᏴⲂꓐꞴ, C СᏟⲤꓚ, D ÐĐƉᎠꓓ, E ɆΕЕᎬꓰ, F ƑϜꓝꞘ, G ǤԌᏀᏳꓖ, H ĦΗНᎻⱧⲎꓧ, J ɈͿЈᎫꓙꞲ, K ΚКᏦⱩⲔꓗꝀ, L ŁᏞⳐꓡ',
  'M ΜϺМᎷⲘꓟ, N ƝΝⲚꓠ, O 0ØƟΟОՕⲞꓳꝊ, OE Œ, OO ꚘꝎ, P ΡРᏢⲢⳎꓑ, R ƦᎡᏒꓣ, S ЅՏᏕᏚꓢ, T ŦƮȾΤТᎢⲦꓔ, T3 Ꜩ, U ɄՍꓴ',
  'V ѴᏙꓦ, W ԜᎳᏔꓪ, X ΧХⲬꓫꞳ, Y ɎΥУҮᎩᎽⲨꓬ, Z ƵȤΖᏃꓜ, a ɑαа, aa ꜳ, ae æӕ, ao ꜵ, au ꜷ, av ꜹꜻ, ay ꜽ, b ƀƂƃƄɓЬъᏏ',
  'bi ꙑ, bl Ы, c ȼсᴄⲥꮯ, d đƌɖɗԁᏧꓒ, dz ʣ, e ɇеҽꬲ, f ƒքᵮẝꞙꬵ, fn ʩ, g ƍǥɠɡցᶃ, h ħɦһհᏂ, i ıɨɩɪιіւᎥᵻᵼⲓꙇꭵ',
  'j ɉϳј, k ƙ, l 1I|łƖƗƚǀɫɭΙІӀӏⲒꓲ, lO Ю, ll ǁ, ls ʪ, lz ʫ, n ŋƞɳոᵰ, o øɵοϭоօᴏᴑⲟꝋꬽꬾ, oe œ, oo ꚙꝏ',
  'p þƥƿρϸрᵽⲣⳏ, q ʠԛզ, r ɍɼɽгᴦᵲⲅꭇꭈꮁ, rn mɱᵯ, s ƽʂѕᵴꜱꮪ, t ŧƭᵵ, tf ꝷ, ts ʦ, u ʋυսᴜᵾꞟꭎꭒ, ue ᵫ, uo ꭣ',
  'v νѵᴠꮩ, w ɯшѡԝաᴡⲽꝡꮃ, x х, y ƴɏɣʏγуүᶌỿⲩꭚ, z ƶȥʐᴢᵶꮓ, Þ Ϸ, ß βᏰ, ĸ κкⲕꮶ, ƅ ьꮟ, Ɔ Ͻ, Ə Ә, Ɛ ԐᏋ, ƨ ϩꙅ',
  'Ʃ Σ, ǝ ә, Ƕ Ԋ, ȝ ӡⳅⳍ, ȷ յ, Ʌ ΛЛ, ɔ ͻ, ɜ з, ɢ ԍᏻꮐ, ɰ պ, ɸ φфⲫⳠⳡ, ʌ ᴧⲗ, ʍ мⲙꮇ, ʘ Ꙩ, ʙ вᏼⲃ, ʜ нⲏꮋ',
  'Γ ГᎱⲄ, Π ПⲠ, Φ ФՓⲪ, Ψ ѰⲮ, π пᴨⲡ, ς ϛⲋ, ψ ѱⲯ, ω ⲱꙍ, И Ͷ, л ᴫ, Ҷ Ӌ, ҷ ӌ, ᴎ ͷи, ᴘ ᴩꮲ, ᴙ я, ᴛ τтⲧꭲ',
  'ẟ δծⳝ, Ⱶ ͰᎨᎰ, Ꜿ Ͽ, ꜿ ͽ, Ꞓ ЄⲈ, ꞓ εєԑⲉꮛ',
];

// What a name or a tag looks like to whoever reads it: after the skeletons of Unicode Technical Standard #39, with
// capitals and accents making no difference. Pure.

const SAME_LOOK = new Map(
  CONFUSABLES.join(', ')
    .split(', ')
    .flatMap((row) => {
      const [look = '', letters = ''] = row.split(' ');
      return Array.from(letters, (letter) => [letter, look] as const);
    }),
);

/** Nobody sees these. */
const INVISIBLE = /[\p{DI}\p{Cf}]/gu;
/** Accents; not the vowel signs that other scripts write as marks. */
const ACCENTS = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/gu;
const APART = /[^\p{L}\p{N}\p{M}]+/gu;

/** One piece of text as it looks; for comparing with another. */
export function lookOf(text: string): string {
  // Accents go first, while they are characters of their own, and once more with those of what a letter looks like.
  const bare = text
    .replace(INVISIBLE, '')
    .normalize('NFKD')
    .replace(INVISIBLE, '')
    .replace(ACCENTS, '')
    .normalize('NFC');
  return Array.from(bare, (letter) => SAME_LOOK.get(letter) ?? letter)
    .join('')
    .toLowerCase();
}

/**
 * How a name can be read: as it is written, where a capital I looks like an l, and in lower case, where it looks like an i.
 * Spaces and punctuation are only gaps; none where there is no letter. Two names that share a reading can be mistaken.
 */
export function readingsOf(name: string): string[] {
  const readings = [name, name.normalize('NFKC').toLowerCase()].map((text) =>
    lookOf(text).replace(APART, ' ').trim(),
  );
  return readings.filter((reading) => reading !== '');
}

export function looksLike(name: string, other: string): boolean {
  const others = readingsOf(other);
  return readingsOf(name).some((reading) => others.includes(reading));
}
