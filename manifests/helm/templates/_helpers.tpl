{{- define "gatewright.image" -}}
{{- with .Values.image -}}
{{- if .registry }}{{ .registry }}/{{ end }}{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end -}}
{{- end -}}
{{- define "gatewright.labels" -}}
app.kubernetes.io/name: gatewright-controller
{{- end -}}
{{- /* Which image proxies have, where it is not the one that the controller takes by itself. */ -}}
{{- define "gatewright.proxy" -}}
{{- $image := .Values.image -}}
{{- $proxy := .Values.proxy.image -}}
- --proxy-image-registry={{ $proxy.registry | default $image.registry }}
- --proxy-image-repository={{ $proxy.repository | default $image.repository }}
- --proxy-image-tag={{ $proxy.tag | default $image.tag | default .Chart.AppVersion }}
{{- end -}}
