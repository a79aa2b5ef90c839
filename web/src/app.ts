/** The texts, for every component. */
import { createContext } from 'preact';
import { useContext } from 'preact/hooks';
import { en, type Texts } from './texts/en.ts';

export const TextsContext = createContext<Texts>(en);

export function useTexts(): Texts {
  return useContext(TextsContext);
}
