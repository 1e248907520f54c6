{{- define "agent.name" -}}
{{- .Release.Name | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "agent.serviceAccount" -}}
{{- .Values.serviceAccount.name | default (include "agent.name" .) -}}
{{- end -}}

{{- define "agent.selector" -}}
app.kubernetes.io/name: slipway-agent
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "agent.labels" -}}
{{ include "agent.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{/* What no schema can say. Each refusal names the value and the remedy. */}}
{{- define "agent.check" -}}
{{- if not .Values.server -}}
{{- fail "server is missing: set it to the address of the control plane, such as https://slipway.example.com" -}}
{{- end -}}
{{- if not .Values.key.existingSecret -}}
{{- fail "key.existingSecret is missing: put the key that was shown when the agent was created into a Secret, and name it" -}}
{{- end -}}
{{- if and .Values.rbac.create (not .Values.rbac.clusterAdmin) (not .Values.rbac.deploys) -}}
{{- fail "the agent may deploy nothing: list what it may in rbac.deploys, or set rbac.clusterAdmin to true" -}}
{{- end -}}
{{- end -}}
