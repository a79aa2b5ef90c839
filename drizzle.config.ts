/** `npm run migrations` reads the schema and writes what changed as the next file in `migrations/sqlite`. */
import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'sqlite',
  schema: ['./src/store/schema.ts', './src/store/schema-work.ts'],
  out: './migrations/sqlite',
});
