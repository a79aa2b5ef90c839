/**
 * Look-alike letters, to compare names as people see them. Each row: a look, then the letters that have it. From
 * confusables.txt of Unicode Technical Standard #39, version 17.0.0 (© 1991-2025 Unicode, Inc., Unicode License V3,
 * https://www.unicode.org/license.txt): letters and digits of Latin, Greek, Cyrillic, Armenian, Coptic, Cherokee and
 * Lisu, without accents, that compatibility normalisation keeps apart; except pairs that would merge two names of one
 * script (σ and ο, գ and զ, ռ and ո).
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

const SAME_LOOK = new Map(
  CONFUSABLES.join(', ')
    .split(', ')
    .flatMap((row) => {
      const [look = '', letters = ''] = row.split(' ');
      return Array.from(letters, (letter) => [letter, look] as const);
    }),
);

const INVISIBLE = /[\p{DI}\p{Cf}]/gu;
/** Accents, but not the vowel signs of other scripts. */
const ACCENTS = /[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]/gu;
const APART = /[^\p{L}\p{N}\p{M}]+/gu;

/** The look of a text, for comparison with another. */
export function lookOf(text: string): string {
  // Accents are removed before and after the lookup: NFKD separates them first.
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

/** As written (a capital I looks like an l) and in lower case (like an i); names that share one can be mistaken. */
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
