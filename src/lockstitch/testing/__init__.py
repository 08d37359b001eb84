"""Public testing aids: a gateway that misbehaves on demand, over HTTP and without.

``gateway.Gateway`` and ``gateway.running_gateway`` serve a script on loopback in four protocols;
``scripted_model.ScriptedModel`` plays one inside the process, as an agent's model. Scripts are
described in docs/gateway.md.
"""
