-- beside: 0005_nodes
ALTER TABLE "lease" ADD COLUMN "asked_by" text;