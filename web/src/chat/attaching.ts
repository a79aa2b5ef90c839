/** Files on their way into a message: chosen at its field, or dropped anywhere in Chat. */
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import { useTexts } from '../app.ts';
import { filled } from '../texts/texts.ts';
import type { Attached } from './queue.ts';
import { upload } from './requests.ts';

/** Taken once, by the field. */
const dropped = signal<readonly File[]>([]);

export function useDrop() {
  const [isOver, setOver] = useState(false);
  return {
    isOver,
    takes: {
      onDragOver(event: DragEvent) {
        // Words that are dragged within the page are none.
        if (!event.dataTransfer?.types.includes('Files')) return;
        event.preventDefault();
        setOver(true);
      },
      onDragLeave({ currentTarget, relatedTarget }: DragEvent) {
        const isInside = relatedTarget instanceof Node && (currentTarget as Node).contains(relatedTarget);
        if (!isInside) setOver(false);
      },
      onDrop(event: DragEvent) {
        setOver(false);
        const files = [...(event.dataTransfer?.files ?? [])];
        if (files.length === 0) return;
        event.preventDefault();
        dropped.value = files;
      },
    },
  };
}

/** Files are with the gateway before their message is. */
export function useFiles(
  /** After files were dropped. */
  goOn: () => void,
) {
  const { chat } = useTexts();
  const [files, setFiles] = useState<Attached[]>([]);
  const [fault, setFault] = useState<string | null>(null);
  const [coming, setComing] = useState(0);

  async function attach(list: Iterable<File> | null): Promise<void> {
    setFault(null);
    // The list itself is emptied with its field.
    const all = [...(list ?? [])];
    setComing((last) => last + all.length);
    for (const file of all) {
      try {
        const kept = await upload(file);
        setFiles((last) => [...last, kept]);
      } catch (error) {
        const reason = error instanceof Error ? error.message : '';
        setFault(`${filled(chat.notAttached, { name: file.name })} ${reason}`);
      }
      setComing((last) => last - 1);
    }
  }

  useEffect(() => {
    const list = dropped.value;
    if (list.length === 0) return;
    dropped.value = [];
    void attach(list);
    goOn();
  }, [dropped.value]);

  const detach = (id: string) => setFiles((last) => last.filter((each) => each.id !== id));
  return { files, fault, coming, attach, detach, clear: () => setFiles([]) };
}
