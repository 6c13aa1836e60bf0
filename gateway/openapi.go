package gateway

import (
	"context"
	"net/http"

	"github.com/google/jsonschema-go/jsonschema"
)

// schemas are the JSON schemas of a job's request and, if they have a type, of the
// metadata of its answers.
func (g *Gateway) schemas(j Job) (request, metadata *jsonschema.Schema, err error) {
	if request, err = j.Schema(); err != nil {
		return nil, nil, err
	}
	if !g.isTool(j.Name) {
		open(request)
	}
	if j.metadata != nil {
		metadata, err = jsonschema.ForType(j.metadata, &jsonschema.ForOptions{TypeSchemas: typeSchemas()})
		open(metadata)
	}
	return request, metadata, err
}

type object = map[string]any

// content is a body of JSON in an OpenAPI document.
func content(schema any) object {
	return object{"application/json": object{"schema": schema}}
}

// envelope is the schema of an answer whose metadata have a schema.
func envelope(metadata any) object {
	return object{
		"type": "object", "required": []string{"answer", "success", "metadata"},
		"properties": object{"answer": object{}, "success": object{"type": "boolean"}, "metadata": metadata},
	}
}

// openAPI answers with the description of all jobs.
func (h *handler) openAPI(ctx context.Context, w http.ResponseWriter) error {
	info, err := h.ws.Info(ctx)
	if err != nil {
		return err
	}
	failure := object{"$ref": "#/components/responses/Failure"}
	paths := object{healthPath: object{"get": object{
		"operationId": "healthz", "summary": "Tell that the service runs", "security": []object{},
		"responses": object{"200": object{"description": "It runs", "content": content(envelope(object{"type": "object"}))}, "default": failure},
	}}}
	for _, j := range h.jobs {
		request, typed, err := h.schemas(j)
		if err != nil {
			return err
		}
		var metadata any = object{"type": "object"}
		if typed != nil {
			metadata = typed
		}
		operation := object{
			"operationId": j.Name, "description": j.Description, "tags": []string{"integration"},
			"requestBody": object{"required": len(request.Required) > 0, "content": content(request)},
			"responses":   object{"200": object{"description": "The answer", "content": content(envelope(metadata))}, "default": failure},
		}
		if h.isTool(j.Name) {
			operation["tags"] = []string{"tool"}
			operation["parameters"] = []object{{"$ref": "#/components/parameters/Host"}, {"$ref": "#/components/parameters/Cwd"}}
		}
		paths["/"+j.Name] = object{"post": operation}
	}
	text := object{"type": "string"}
	doc := object{
		"openapi": "3.1.0",
		"info":    object{"title": info.Name, "version": info.Version},
		"tags": []object{
			{"name": "tool", "description": "For models, also by MCP at " + mcpPath},
			{"name": "integration", "description": "For integrations only"},
		},
		"paths": paths,
		"components": object{"parameters": object{
			"Host": object{"name": hostHeader, "in": "header", "description": "The agent that asks, which notes bear as their author", "schema": text},
			"Cwd":  object{"name": cwdHeader, "in": "header", "description": "The folder that it works in, written as in a URL: what is of the same project comes first", "schema": text},
		}, "responses": object{"Failure": object{
			"description": "What is wrong; with 503, the header Retry-After tells the seconds to wait",
			"content": content(envelope(object{"type": "object", "properties": object{
				"class": object{"type": "string", "enum": []string{"retryable", "configuration", "permanent"}},
				"field": text, "reason": text, "jobs": object{"type": "array", "items": text},
			}})),
		}}},
	}
	if h.token != "" {
		doc["security"] = []object{{"token": []string{}}}
		doc["components"].(object)["securitySchemes"] = object{"token": object{"type": "http", "scheme": "bearer"}}
	}
	respond(w, http.StatusOK, doc)
	return nil
}
