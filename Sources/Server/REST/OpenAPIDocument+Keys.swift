// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let keys: String = #"""
          # Accounts whose passwords stay with the client.
          /1/{app}/auth/prelogin:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: prelogin
              summary: How a password is to be stretched; of users that there are not always the same is said.
              tags: [keys]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [u]
                      properties:
                        u: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Stretch' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/signup:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: signUp
              summary: A new account. The first writer of a name wins.
              tags: [keys]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [u, a, salt, access, bundle, recover]
                      properties:
                        u: { type: string }
                        a: { $ref: '#/components/schemas/Key' }
                        kdf: { const: 1 }
                        n: { const: 17 }
                        r: { const: 8 }
                        p: { const: 1 }
                        salt: { $ref: '#/components/schemas/Salt' }
                        access: { $ref: '#/components/schemas/Sealed' }
                        bundle: { $ref: '#/components/schemas/Sealed' }
                        recover: { $ref: '#/components/schemas/Key' }
                        device: { type: string }
              responses:
                '200': { $ref: '#/components/responses/SignedUp' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '403': { $ref: '#/components/responses/AccountError' }
                '409': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/login:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: logIn
              summary: A token, and the keys as they were sealed.
              tags: [keys]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [u, a]
                      properties:
                        u: { type: string }
                        a: { $ref: '#/components/schemas/Key' }
                        device: { type: string }
              responses:
                '200': { $ref: '#/components/responses/LoggedIn' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/password:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: changePassword
              summary: Another password. All tokens end but the one in the answer.
              tags: [keys]
              security:
                - token: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [a_old, a, salt, access]
                      properties:
                        a_old: { $ref: '#/components/schemas/Key' }
                        a: { $ref: '#/components/schemas/Key' }
                        r:
                          $ref: '#/components/schemas/Key'
                          description: Of the access key that is sealed. Wanted once the account has had another.
                        kdf: { const: 1 }
                        salt: { $ref: '#/components/schemas/Salt' }
                        access: { $ref: '#/components/schemas/Sealed' }
                        device: { type: string }
              responses:
                '200': { $ref: '#/components/responses/NewToken' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '409': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/recover:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: recoverAccount
              summary: Another password, by the recovery words.
              tags: [keys]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [u, r, a, salt, access]
                      properties:
                        u: { type: string }
                        r: { $ref: '#/components/schemas/Key' }
                        a: { $ref: '#/components/schemas/Key' }
                        kdf: { const: 1 }
                        salt: { $ref: '#/components/schemas/Salt' }
                        access: { $ref: '#/components/schemas/Sealed' }
                        device: { type: string }
              responses:
                '200': { $ref: '#/components/responses/LoggedIn' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '409': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/access:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: changeAccessKey
              summary: Another access key, and so other recovery words; password, content and tokens stay.
              tags: [keys]
              security:
                - token: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [a, r, version, access, bundle, recover]
                      properties:
                        a: { $ref: '#/components/schemas/Key' }
                        r: { $ref: '#/components/schemas/Key' }
                        version: { type: integer, format: int64, minimum: 1 }
                        access: { $ref: '#/components/schemas/Sealed' }
                        bundle: { $ref: '#/components/schemas/Sealed' }
                        recover: { $ref: '#/components/schemas/Key' }
              responses:
                '200': { $ref: '#/components/responses/BundleVersion' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '403': { $ref: '#/components/responses/AccountError' }
                '409': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/upgrade:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: beginUpgrade
              summary: Keys for an account whose password was sent; both logins are good until the end. Begun before, it says what is there.
              tags: [keys]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username, password, u, a, salt, access, recover, bundle, old_salt, old_access]
                      properties:
                        username: { type: string, description: As authorize takes it. }
                        password: { type: string }
                        u: { type: string, description: The name from now on. }
                        a: { $ref: '#/components/schemas/Key' }
                        kdf: { const: 1 }
                        salt: { $ref: '#/components/schemas/Salt' }
                        access: { $ref: '#/components/schemas/Sealed' }
                        recover: { $ref: '#/components/schemas/Key' }
                        bundle: { $ref: '#/components/schemas/Sealed' }
                        old_salt: { $ref: '#/components/schemas/Salt' }
                        old_access: { $ref: '#/components/schemas/Sealed' }
                        device: { type: string }
              responses:
                '200':
                  description: Begun now, with a token; or before, with what leads on.
                  content:
                    application/json:
                      schema:
                        type: object
                        required: [begun, userid, version]
                        properties:
                          begun: { type: boolean }
                          userid: { type: string }
                          access_token: { type: string, description: Where it begins now. }
                          u: { type: string, description: Where it began before, like the rest. }
                          old: { type: object, description: The access key under the old password, and how that is stretched. }
                          bundle: { type: [string, 'null'] }
                          version: { type: integer, minimum: 0 }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '403': { $ref: '#/components/responses/AccountError' }
                '409': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }
            put:
              operationId: finishUpgrade
              summary: Ends the login from before, and every token but the one that it gives.
              tags: [keys]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [u, r]
                      properties:
                        u: { type: string }
                        r: { $ref: '#/components/schemas/Key' }
                        device: { type: string }
              responses:
                '200':
                  description: A token.
                  content:
                    application/json:
                      schema:
                        type: object
                        required: [userid, access_token]
                        properties:
                          userid: { type: string }
                          access_token: { type: string }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/forgot:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: forgotKey
              summary: Sends a code to a user whose name is an e-mail address; the answer is the same for everybody.
              tags: [keys]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [u]
                      properties:
                        u: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Done' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/auth/verify:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: verifyKey
              summary: Another password, for who has the code. The account is locked until its keys are sealed anew.
              tags: [keys]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [u, code, a, salt]
                      properties:
                        u: { type: string }
                        code: { type: string }
                        a: { $ref: '#/components/schemas/Key' }
                        kdf: { const: 1 }
                        salt: { $ref: '#/components/schemas/Salt' }
              responses:
                '200': { $ref: '#/components/responses/Locked' }
                '400': { $ref: '#/components/responses/AccountError' }
                '401': { $ref: '#/components/responses/AccountError' }
                '409': { $ref: '#/components/responses/AccountError' }
                '413': { $ref: '#/components/responses/AccountTooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

        """#
}
