// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let schemas: String = #"""
          schemas:
            Error:
              type: object
              required: [code, message, hint]
              properties:
                code:
                  type: string
                  enum:
                    - invalid_json
                    - invalid_key
                    - invalid_bucket
                    - invalid_version
                    - invalid_parameter
                    - invalid_condition
                    - invalid_change
                    - invalid_diff
                    - invalid_option
                    - sealed_bucket
                    - invalid_request
                    - unauthorized
                    - read_only
                    - admin_only
                    - bucket_limit
                    - not_found
                    - no_such_user
                    - unknown_cv
                    - no_such_path
                    - method_not_allowed
                    - duplicate_ccid
                    - nothing_changed
                    - version_mismatch
                    - too_large
                    - too_many_attempts
                    - server_error
                    - unavailable
                message: { type: string }
                hint: { type: string }
            IndexPage:
              type: object
              required: [current, index]
              properties:
                current: { type: string, description: The cv that all pages of the walk stand at. }
                index:
                  type: array
                  items:
                    type: object
                    required: [id, v]
                    properties:
                      id: { type: string }
                      v: { type: integer, format: int64, minimum: 1 }
                      d: { type: object }
                mark: { type: string, description: Where the next page begins; missing on the last one. }
                count: { type: integer, description: Objects in the whole walk, where it is known. }
            SentChange:
              type: object
              description: A change as sockets send it. EMPTY and DROP are refused.
              required: [id, ccid, o]
              properties:
                id: { type: string }
                ccid: { type: string }
                o: { enum: [M, '-'] }
                sv: { type: integer, format: int64, minimum: 0 }
                v: { type: object, description: A jsondiff. }
                d: { type: object, description: The whole object. }
            AppliedChange:
              type: object
              required: [clientid, cv, id, o, ev, ccids]
              properties:
                clientid: { type: string }
                cv: { type: string }
                id: { type: string }
                o: { enum: [M, '-'] }
                sv: { type: integer, format: int64, minimum: 1 }
                ev: { type: integer, format: int64, minimum: 1 }
                v: { type: object }
                ccids: { type: array, items: { type: string } }
            RefusedChange:
              type: object
              required: [clientid, id, error, ccids]
              properties:
                clientid: { type: string }
                id: { type: string }
                error: { enum: [400, 401, 404, 405, 409, 412, 413, 440, 500, 503] }
                ccids: { type: array, items: { type: string } }
            Refusal:
              description: Of HTTP itself, before the request is looked at.
              type: object
              required: [code, message, hint]
              properties:
                code: { type: string, pattern: '^[a-z_]+$', description: 'Such as target_too_long or body_too_long.' }
                message: { type: string }
                hint: { type: string }
        """#
}
