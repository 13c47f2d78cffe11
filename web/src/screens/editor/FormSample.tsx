/** The form as the reviewer sees it, with sample data in place of what a run would have. */
import { useState } from "react";
import { FormPreview } from "@/components/FormPreview";
import { Markdown } from "@/components/LazyMarkdown";
import { type Config, isRecord } from "@/models/documentData";
import { filled } from "@/models/formSample";
import { Labelled } from "./Labelled";
import { t } from "./text";
import { YamlField } from "./YamlField";

export function FormSample({ sections, prompt, sample }: { sections: Config[]; prompt: string; sample: Config }) {
  const [own, setOwn] = useState<Config | null>(null);
  const data = own ?? sample;
  return (
    <section className="form-sample" aria-label={t("preview")}>
      <h3>{t("preview")}</h3>
      <div className="panel form-sample-body">
        <Markdown text={String(filled(prompt, data))} />
        <FormPreview sections={sections} sample={data} />
      </div>
      <details>
        <summary>{t("sample")}</summary>
        <Labelled label={t("sample")} id="form-sample-data">
          <YamlField id="form-sample-data" value={data} onChange={(value) => setOwn(isRecord(value) ? value : {})} />
        </Labelled>
      </details>
    </section>
  );
}
