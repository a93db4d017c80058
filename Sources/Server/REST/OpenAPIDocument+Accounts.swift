// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let accounts: String = #"""
          # Accounts whose passwords are sent.
          /1/{app}/create/:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: createAccount
              summary: A new account, with its first token.
              tags: [passwords]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username, password]
                      properties:
                        username: { type: string }
                        password: { type: string }
                  application/x-www-form-urlencoded:
                    schema:
                      type: object
                      required: [username, password]
                      properties:
                        username: { type: string }
                        password: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Granted' }
                '400': { $ref: '#/components/responses/AccountText' }
                '401': { $ref: '#/components/responses/AccountText' }
                '403': { $ref: '#/components/responses/AccountText' }
                '409': { $ref: '#/components/responses/AccountText' }
                '413': { $ref: '#/components/responses/TooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/authorize/:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: authorizeAccount
              summary: Another token, for who knows the password.
              tags: [passwords]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username, password]
                      properties:
                        username: { type: string }
                        password: { type: string }
                  application/x-www-form-urlencoded:
                    schema:
                      type: object
                      required: [username, password]
                      properties:
                        username: { type: string }
                        password: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Granted' }
                '400': { $ref: '#/components/responses/AccountText' }
                '401': { $ref: '#/components/responses/AccountText' }
                '403': { $ref: '#/components/responses/AccountText' }
                '413': { $ref: '#/components/responses/TooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/update/:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: updateAccount
              summary: Another name, another password, or both.
              tags: [passwords]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username, password]
                      properties:
                        username: { type: string }
                        password: { type: string }
                        new_username: { type: string }
                        new_password: { type: string }
                  application/x-www-form-urlencoded:
                    schema:
                      type: object
                      required: [username, password]
                      properties:
                        username: { type: string }
                        password: { type: string }
                        new_username: { type: string }
                        new_password: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Done' }
                '400': { $ref: '#/components/responses/AccountText' }
                '401': { $ref: '#/components/responses/AccountText' }
                '403': { $ref: '#/components/responses/AccountText' }
                '409': { $ref: '#/components/responses/AccountText' }
                '413': { $ref: '#/components/responses/TooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/forgot/:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: forgotPassword
              summary: Sends a code to a user whose name is an e-mail address; the answer is the same for everybody.
              tags: [passwords]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username]
                      properties:
                        username: { type: string }
                  application/x-www-form-urlencoded:
                    schema:
                      type: object
                      required: [username]
                      properties:
                        username: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Done' }
                '400': { $ref: '#/components/responses/AccountText' }
                '401': { $ref: '#/components/responses/AccountText' }
                '403': { $ref: '#/components/responses/AccountText' }
                '413': { $ref: '#/components/responses/TooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/verify/:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: verifyPassword
              summary: Another password, for who has the code. All tokens of the user end.
              tags: [passwords]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username, code, new_password]
                      properties:
                        username: { type: string }
                        code: { type: string }
                        new_password: { type: string }
                  application/x-www-form-urlencoded:
                    schema:
                      type: object
                      required: [username, code, new_password]
                      properties:
                        username: { type: string }
                        code: { type: string }
                        new_password: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Done' }
                '400': { $ref: '#/components/responses/AccountText' }
                '401': { $ref: '#/components/responses/AccountText' }
                '403': { $ref: '#/components/responses/AccountText' }
                '409': { $ref: '#/components/responses/AccountText' }
                '413': { $ref: '#/components/responses/TooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/reset_password/:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: resetPassword
              summary: Another password, by an admin key.
              tags: [passwords]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username, new_password]
                      properties:
                        username: { type: string }
                        new_password: { type: string }
                  application/x-www-form-urlencoded:
                    schema:
                      type: object
                      required: [username, new_password]
                      properties:
                        username: { type: string }
                        new_password: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Done' }
                '400': { $ref: '#/components/responses/AccountText' }
                '401': { $ref: '#/components/responses/AccountText' }
                '403': { $ref: '#/components/responses/AccountText' }
                '404': { $ref: '#/components/responses/AccountText' }
                '409': { $ref: '#/components/responses/AccountText' }
                '413': { $ref: '#/components/responses/TooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

          /1/{app}/delete/:
            parameters:
              - $ref: '#/components/parameters/app'
            post:
              operationId: deleteAccount
              summary: Ends the account and erases its data, by an admin key or the password.
              tags: [passwords]
              security:
                - apiKey: []
              requestBody:
                required: true
                content:
                  application/json:
                    schema:
                      type: object
                      required: [username]
                      properties:
                        username: { type: string }
                        password: { type: string }
                  application/x-www-form-urlencoded:
                    schema:
                      type: object
                      required: [username]
                      properties:
                        username: { type: string }
                        password: { type: string }
              responses:
                '200': { $ref: '#/components/responses/Ended' }
                '400': { $ref: '#/components/responses/AccountText' }
                '401': { $ref: '#/components/responses/AccountText' }
                '403': { $ref: '#/components/responses/AccountText' }
                '404': { $ref: '#/components/responses/AccountText' }
                '413': { $ref: '#/components/responses/TooLarge' }
                '414': { $ref: '#/components/responses/TooLong' }
                '429': { $ref: '#/components/responses/AccountLimited' }
                '503': { $ref: '#/components/responses/AccountUnavailable' }

        """#
}
