// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let answers: String = #"""
            # Of built-in accounts.
            Granted:
              description: The user and a token.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Granted' }
            Done:
              description: It was done.
              content:
                application/json:
                  schema: { type: object, required: [status], properties: { status: { const: success } } }
            Ended:
              description: The account has ended; its data goes. `kept` tells what stays.
              content:
                application/json:
                  schema: { type: object, required: [status, kept], properties: { status: { const: success }, kept: { type: array, items: { type: string } } } }
            AccountText:
              description: A short text that clients show.
              content:
                text/plain:
                  schema: { type: string }
            AccountError:
              description: Why not.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/AccountError' }
                text/plain:
                  schema: { type: string }
            AccountLimited:
              description: Too many attempts.
              headers:
                Retry-After: { $ref: '#/components/headers/RetryAfter' }
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/AccountError' }
                text/plain:
                  schema: { type: string }
            AccountTooLarge:
              description: The body, or a member of it, is larger than the server takes.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/AccountError' }
                text/plain:
                  schema: { type: string }
            AccountUnavailable:
              description: Not now; the same request may be sent again.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/AccountError' }
                text/plain:
                  schema: { type: string }
            Stretch:
              description: How.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/Stretch' }
            SignedUp:
              description: The user and a token.
              content:
                application/json:
                  schema: { type: object, required: [userid, access_token, version], properties: { userid: { type: string }, access_token: { type: string }, version: { const: 1 } } }
            LoggedIn:
              description: A token, and the keys as they were sealed.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/LoggedIn' }
            NewToken:
              description: A token.
              content:
                application/json:
                  schema: { type: object, required: [access_token], properties: { access_token: { type: string } } }
            Locked:
              description: The password is set, and the account locked.
              content:
                application/json:
                  schema: { type: object, required: [status, locked], properties: { status: { const: success }, locked: { const: true } } }
            Bundle:
              description: The bundle; null and 0 where there is none. Of a partner's user also the sealed access key.
              content:
                application/json:
                  schema:
                    type: object
                    required: [bundle, version]
                    properties:
                      bundle: { type: [string, 'null'] }
                      version: { type: integer, minimum: 0 }
                      access: { type: [string, 'null'] }
                      kdf: { const: 1 }
                      n: { type: integer }
                      r: { type: integer }
                      p: { type: integer }
                      salt: { type: string }
            BundleRefused:
              description: Why not, to whoever shows a partner's token as partners' requests have it.
              content:
                application/json:
                  schema:
                    anyOf:
                      - $ref: '#/components/schemas/AccountError'
                      - $ref: '#/components/schemas/PartnerError'
            BundleLimited:
              description: Too many attempts.
              headers:
                Retry-After: { $ref: '#/components/headers/RetryAfter' }
              content:
                application/json:
                  schema:
                    anyOf:
                      - $ref: '#/components/schemas/AccountError'
                      - $ref: '#/components/schemas/PartnerError'
            BundleVersion:
              description: The version that was written.
              content:
                application/json:
                  schema: { type: object, required: [version], properties: { version: { type: integer, minimum: 1 } } }
            Tokens:
              description: They are named by the first digits of their hashes.
              content:
                application/json:
                  schema: { type: object, required: [tokens], properties: { tokens: { type: array, items: { $ref: '#/components/schemas/Token' } } } }
            AddedToken:
              description: A token for the other device.
              content:
                application/json:
                  schema: { type: object, required: [access_token], properties: { access_token: { type: string } } }
            PairingOpened:
              description: Seconds that it is there.
              content:
                application/json:
                  schema: { type: object, required: [expires], properties: { expires: { type: integer } } }
            Pairing:
              description: What the new device shows, and what the old one has sealed for it.
              content:
                application/json:
                  schema:
                    type: object
                    required: [hello, sealed]
                    properties:
                      hello: { $ref: '#/components/schemas/Sealed' }
                      sealed: { type: [string, 'null'] }
            NoteStanding:
              description: What holds for the user's encrypted notes.
              content:
                application/json:
                  schema:
                    type: object
                    required: [Pro, ProReceipt, notesMax]
                    properties:
                      Pro: { type: boolean, description: As many notes as they like. }
                      ProReceipt: { type: [string, 'null'], description: What the operator wrote down when the user became Pro. }
                      notesMax: { type: [integer, 'null'], description: Notes that there may be; null for a user who is Pro. }
            Nothing:
              description: It was done.

            # Of partners.
            Registered:
              description: The user's id here.
              content:
                application/json:
                  schema: { type: object, required: [entity_id, partner_id], properties: { entity_id: { type: string }, partner_id: { type: string } } }
            PartnerUser:
              description: The user.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/PartnerUser' }
            PartnerLogin:
              description: The user, and a token.
              headers:
                authorization: { $ref: '#/components/headers/Authorization' }
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/PartnerUser' }
            Renewed:
              description: A token, with its scheme before it.
              content:
                application/json:
                  schema: { type: object, required: [accessToken], properties: { accessToken: { type: string } } }
            PublicKeys:
              description: The keys, base64; null before a device has uploaded them.
              content:
                application/json:
                  schema: { type: object, required: [public_key, sign_key], properties: { public_key: { type: [string, 'null'] }, sign_key: { type: [string, 'null'] } } }
            Devices:
              description: The newest 64; times are seconds since 1970.
              content:
                application/json:
                  schema: { type: object, required: [devices], properties: { devices: { type: array, items: { $ref: '#/components/schemas/Device' } } } }
            PartnerEmpty:
              description: It was heard.
              content:
                application/json:
                  schema: { type: object }
            PartnerDone:
              description: It was done.
            Denied:
              description: Anything is wrong with key, token, user or device; always these bytes.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/PartnerError' }
            Expired:
              description: Nothing is wrong but the token's time.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/PartnerError' }
            PartnerInvalid:
              description: The token is good, the body is not.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/PartnerError' }
                text/plain:
                  schema: { type: string }
            PartnerTooLarge:
              description: The body is larger than the server takes.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/PartnerError' }
                text/plain:
                  schema: { type: string }
            KeysTaken:
              description: The user has other keys already.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/PartnerError' }
            PartnerLimited:
              description: Too many attempts.
              headers:
                Retry-After: { $ref: '#/components/headers/RetryAfter' }
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/PartnerError' }
            PartnerUnavailable:
              description: Not now; the same request may be sent again.
              content:
                application/json:
                  schema: { $ref: '#/components/schemas/PartnerError' }

        """#
}
