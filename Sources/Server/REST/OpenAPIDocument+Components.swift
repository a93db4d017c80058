// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let components: String = #"""
        components:
          securitySchemes:
            token:
              type: apiKey
              in: header
              name: X-Simperium-Token
              description: |
                A user's token; or an admin key of the app, with the user that it acts for in X-Simperium-User.

            apiKey:
              type: apiKey
              in: header
              name: X-Simperium-API-Key
              description: A key of the app. It may stand in the body, too, as `client_id`.
            partnerKey:
              type: apiKey
              in: header
              name: x-rezolve-partner-apikey
              description: Names the partner.
            bearer:
              type: http
              scheme: bearer
              bearerFormat: JWT
              description: Registration or login token, HS512, signed with the partner's auth key.

          parameters:
            app:
              name: app
              in: path
              required: true
              description: 1 to 64 letters, digits or any of . _ - in any case.
              schema: { type: string, minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._-]+$' }
              example: notes
            tokenDevice:
              name: x-rezolve-device-id
              in: header
              description: Of the device that a partner's token names.
              schema: { type: string, minLength: 1, maxLength: 256, pattern: '^[A-Za-z0-9/+_-]+$' }
            partner:
              name: partner
              in: path
              required: true
              schema: { type: string, pattern: '^[1-9][0-9]{0,8}$' }
              example: '1000'
            entity:
              name: entity
              in: path
              required: true
              schema: { type: string, pattern: '^[0-9a-f-]{36}$' }
              example: 6d0f5d0e-8a0c-4a53-9d0b-0a4b1c1f5b0e
            device:
              name: x-rezolve-device-id
              in: header
              required: true
              schema: { type: string, minLength: 1, pattern: '^[!-~]+$' }
              example: wlkCDA2Hy/CfMqVAShslBAR
            bucket:
              name: bucket
              in: path
              required: true
              schema: { type: string, minLength: 1, maxLength: 64, pattern: '^[A-Za-z0-9._%-]+$' }
              example: todo
            key:
              name: key
              in: path
              required: true
              schema: { type: string, minLength: 1, maxLength: 256, pattern: '^[A-Za-z0-9._%@-]+$' }
              example: milk
            version:
              name: version
              in: path
              required: true
              schema: { type: integer, format: int64, minimum: 1 }
              example: 1
            clientid:
              name: clientid
              in: query
              description: Told with the changes that this request makes. At most 256 bytes without control characters.
              schema: { type: string, maxLength: 256, default: http }
            ccid:
              name: ccid
              in: query
              description: Identity of the change. Sent again with the same one, it is answered 409 and not made twice.
              schema: { type: string, maxLength: 256, pattern: '^[!-~]*$' }
            replace:
              name: replace
              in: query
              description: Puts the body in the object's place.
              schema: { enum: ['0', '1'], default: '0' }
            response:
              name: response
              in: query
              description: Answers with the object.
              schema: { enum: ['0', '1'], default: '0' }
            ifMatch:
              name: If-Match
              in: header
              description: Only if the object is at this version, or with * if it is there at all; else 412.
              schema: { type: string, pattern: '^(\*|"[1-9][0-9]{0,15}")$' }
              example: '"1"'
            ifNoneMatch:
              name: If-None-Match
              in: header
              description: Answers 304 when this is the version that would be sent.
              schema: { type: string, pattern: '^"[1-9][0-9]{0,15}"$' }
              example: '"1"'

          requestBodies:
            Object:
              required: true
              content:
                application/json:
                  schema: { type: object }
                  example: { done: false }

          headers:
            Version:
              description: The object's version.
              required: true
              schema: { type: integer, format: int64, minimum: 1 }
            ETag:
              description: The object's version as an entity tag.
              required: true
              schema: { type: string }
            Authorization:
              description: The word Bearer and the token.
              required: true
              schema: { type: string }
            RetryAfter:
              description: Seconds.
              required: true
              schema: { type: integer, minimum: 1 }

          responses:
            Object:
              description: The object.
              headers:
                X-Simperium-Version: { $ref: '#/components/headers/Version' }
                ETag: { $ref: '#/components/headers/ETag' }
              content:
                application/json:
                  schema: { type: object }
            NotModified:
              description: The client has this version.
              headers:
                X-Simperium-Version: { $ref: '#/components/headers/Version' }
                ETag: { $ref: '#/components/headers/ETag' }
            Written:
              description: The change is on disk. Empty, or the object if it was asked for.
              headers:
                X-Simperium-Version: { $ref: '#/components/headers/Version' }
                ETag: { $ref: '#/components/headers/ETag' }
            Removed:
              description: The removal is on disk. Empty.
              headers:
                X-Simperium-Version: { $ref: '#/components/headers/Version' }
                ETag: { $ref: '#/components/headers/ETag' }
            Changes:
              description: Changes, and of those that were sent also refusals, in the order in which they were decided.
              content:
                application/json:
                  schema:
                    type: array
                    items:
                      oneOf:
                        - $ref: '#/components/schemas/AppliedChange'
                        - $ref: '#/components/schemas/RefusedChange'
            Invalid:
              description: The request cannot be used as it is.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Error' }
                text/plain:
                  schema: { type: string, description: The request breaks a rule of HTTP itself. }
            Unauthorized:
              description: The token is missing or no good, or may only read.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Error' }
            Forbidden:
              description: The user has as many buckets as there may be, or only administrators may do that; `code` tells which.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Error' }
            NotFound:
              description: No such object, version, position or path.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Error' }
            Duplicate:
              description: A change with this ccid was made before.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Error' }
            Precondition:
              description: Nothing would change, or a condition does not hold; `code` tells which.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Error' }
            TooLarge:
              description: The object, or the body, is larger than the server takes.
              content:
                application/json:
                  schema:
                    anyOf:
                      - { $ref: '#/components/schemas/Error' }
                      - { $ref: '#/components/schemas/Refusal' }
            TooLong:
              description: The request's target is longer than 4096 bytes.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Refusal' }
            Limited:
              description: Too many tokens of a partner's app that were not good, from one address; none is looked at now.
              headers:
                Retry-After: { $ref: '#/components/headers/RetryAfter' }
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Error' }
            Unavailable:
              description: Not now. The same request with the same ccid may be sent again.
              headers:
                Retry-After: { $ref: '#/components/headers/RetryAfter' }
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Error' }

        """#
}
