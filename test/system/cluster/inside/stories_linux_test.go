// SPDX-License-Identifier: Apache-2.0

package inside

import (
	"strings"
	"testing"
	"time"
)

// TestStoryNamespace: the level is the namespace's. Of OpenShift there is its annotation,
// and in place of its admission a policy that gives pods that level.
func TestStoryNamespace(t *testing.T) {
	need(t)
	var space struct {
		Metadata struct{ Annotations map[string]string }
	}
	ask(t, "GET", namespace, &space)
	l := space.Metadata.Annotations["openshift.io/sa.scc.mcs"]
	create(t, "namespace", nil)
	t.Cleanup(func() {
		ask(t, "DELETE", admission+"mutatingadmissionpolicybindings/level", nil)
		ask(t, "DELETE", admission+"mutatingadmissionpolicies/level", nil)
	})
	const asked = "apiVersion: v1\nkind: Pod\nmetadata: {name: asked}\nspec: {containers: [{name: app, image: none}], serviceAccountName: fastlabel}\n"
	await(t, time.Minute, "a pod gets the namespace's level", func() bool {
		_, text := request("POST", namespace+"/pods?dryRun=All", asked)
		return strings.Contains(string(text), `"seLinuxOptions":{"level":"`+l+`"}`)
	})
	job(t, l)
	startsWith(t, "namespace", data, "{}", l)
}
