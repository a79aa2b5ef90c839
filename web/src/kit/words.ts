/** Sizes and times in words, in the language of the page. */

const UNITS = ['byte', 'kilobyte', 'megabyte', 'gigabyte'];

/** As chosen when the page began. */
export function languageOfPage(): string {
  return document.documentElement.lang || 'en';
}

export function sizeInWords(bytes: number, language: string): string {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log10(Math.max(1, bytes)) / 3));
  const value = bytes / 1000 ** step;
  return new Intl.NumberFormat(language, {
    style: 'unit',
    unit: UNITS[step] ?? 'byte',
    unitDisplay: step === 0 ? 'long' : 'short',
    maximumFractionDigits: value < 10 && step > 0 ? 1 : 0,
  }).format(value);
}

/** Making one costs more than using it a hundred times. */
const formats = new Map<string, Intl.DateTimeFormat>();

function formatOf(language: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${language} ${Object.keys(options)}`;
  const format = formats.get(key) ?? new Intl.DateTimeFormat(language, options);
  formats.set(key, format);
  return format;
}

/** The time of a day that is today, else date and time. */
export function timeInWords(at: number, language: string, now = Date.now()): string {
  const isToday = new Date(at).toDateString() === new Date(now).toDateString();
  const isThisYear = new Date(at).getFullYear() === new Date(now).getFullYear();
  return formatOf(language, {
    hour: 'numeric',
    minute: '2-digit',
    ...(!isToday && { day: 'numeric', month: 'short' }),
    ...(!isThisYear && { year: 'numeric' }),
  }).format(at);
}

export function dayInWords(at: number, language: string): string {
  return formatOf(language, { dateStyle: 'full' }).format(at);
}
