package gateway

import "net/http"

func (h *handler) openAPI(w http.ResponseWriter) error {
	respond(w, http.StatusOK, map[string]any{"openapi": "3.1.0"})
	return nil
}
