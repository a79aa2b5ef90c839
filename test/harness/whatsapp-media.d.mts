export function serveMediaFrom(cdn: { port: number; ca: string }): () => void;
