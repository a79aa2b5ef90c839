/** Chooses the catalogue by the browser's languages, and fills in names and numbers. */
import { de } from './de.ts';
import { en, type Texts } from './en.ts';

const CATALOGUES: Record<string, Texts> = { en, de };

export function textsFor(languages: readonly string[]): { language: string; texts: Texts } {
  const language = languages.map((each) => each.slice(0, 2).toLowerCase()).find((each) => each in CATALOGUES);
  return { language: language ?? 'en', texts: CATALOGUES[language ?? 'en'] ?? en };
}

export function filled(text: string, values: Record<string, string | number>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
