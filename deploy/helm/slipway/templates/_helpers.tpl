{{- define "slipway.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "slipway.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "slipway.name" .) -}}
{{- end -}}

{{- define "slipway.selector" -}}
app.kubernetes.io/name: slipway
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "slipway.labels" -}}
{{ include "slipway.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* Without a certificate of its own, what ends TLS is a proxy in front. */}}
{{- define "slipway.behindProxy" -}}
{{- .Values.behindProxy | default (ternary "" "x-forwarded-for" (ne .Values.tls.existingSecret "")) -}}
{{- end -}}

{{/* What no schema can say. Each refusal names the value and the remedy. */}}
{{- define "slipway.check" -}}
{{- $database := .Values.database.existingSecret -}}
{{- if not .Values.publicUrl -}}
{{- fail "publicUrl is missing: set it to the address by which nodes reach the control plane, such as https://slipway.example.com" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) (not $database) -}}
{{- fail "replicas is greater than 1 without a database: set database.existingSecret to a Secret that holds a postgres:// URL, or replicas to 1" -}}
{{- end -}}
{{- if and (gt (int .Values.replicas) 1) .Values.data.existingClaim -}}
{{- fail "data.existingClaim is for one replica: the data folder belongs to one process; leave it out, or set replicas to 1" -}}
{{- end -}}
{{- if and $database (not .Values.signingKey.existingSecret) (not .Values.data.existingClaim) -}}
{{- fail "signingKey.existingSecret is missing: replicas must share one signing key, and the data folder goes with its pod; README.md of the chart says how to make one" -}}
{{- end -}}
{{- if not (or $database .Values.data.existingClaim .Values.data.ephemeral) -}}
{{- fail "nothing outlives the pod: set database.existingSecret, or data.existingClaim for SQLite on a volume, or data.ephemeral to true to try things out" -}}
{{- end -}}
{{- end -}}
