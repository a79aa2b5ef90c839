/** Why something failed, as an alert. Empty words: the gateway did not answer. */
import { useTexts } from '../app.ts';

export function Fault({ says }: { says: string | null }) {
  const { frame } = useTexts();
  return says === null ? null : <p role="alert">{says || frame.failed}</p>;
}
