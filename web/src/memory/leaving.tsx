/** Asks before words are left that are not saved. Back leaves them where they are: they wait for the next visit. */
import { useEffect, useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { Dialog } from '../kit/dialog.tsx';
import { addressOf, go } from '../place.ts';
import { discardDrafts, unsaved } from './files.ts';

export function Leaving() {
  const { memory } = useTexts();
  const [to, setTo] = useState<string | null>(null);
  useEffect(() => {
    const asks = (event: BeforeUnloadEvent) => unsaved().length > 0 && event.preventDefault();
    function click(event: MouseEvent): void {
      const link = event.target instanceof Element ? event.target.closest('a') : null;
      const address = link?.getAttribute('href') ?? '';
      const isPlain = event.button === 0 && !(event.ctrlKey || event.metaKey || event.shiftKey);
      const leaves = address.startsWith('#/') && !address.startsWith(addressOf('memory'));
      if (!isPlain || !leaves || unsaved().length === 0) return;
      event.preventDefault();
      event.stopPropagation();
      setTo(address);
    }
    addEventListener('beforeunload', asks);
    document.addEventListener('click', click, true);
    return () => {
      removeEventListener('beforeunload', asks);
      document.removeEventListener('click', click, true);
    };
  }, []);
  if (to === null) return null;
  return (
    <Dialog title={memory.leaveTitle} close={() => setTo(null)}>
      <div class="stack">
        <p>{memory.leaveWords}</p>
        <ul class="small">
          {unsaved().map((file) => (
            <li key={file}>{file}</li>
          ))}
        </ul>
        <div class="buttons">
          <button type="button" onClick={() => setTo(null)}>
            {memory.stay}
          </button>
          <button
            type="button"
            class="danger"
            onClick={() => {
              discardDrafts();
              go(to);
            }}
          >
            {memory.discard}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
