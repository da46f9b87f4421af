package server

import (
	"encoding/json"
	"net/http"
)

func planRoutes(p Planner) []route {
	return []route{{http.MethodPost, "/definitions/{key}/plan", RoleViewer, ofTenant, func(c *adminCall) (answer, error) {
		var in struct {
			Param json.RawMessage
			Task  bool
		}
		if err := c.decode(&in); err != nil {
			return answer{}, err
		}
		param, err := paramObject(in.Param)
		if err != nil {
			return answer{}, err
		}
		plan, err := p.Plan(c.ctx, PlanQuery{Tenant: c.tenant, Key: c.param("key"), Param: param, Task: in.Task})
		return answer{data: plan}, err
	}}}
}
