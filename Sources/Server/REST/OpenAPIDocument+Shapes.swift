// Made from docs/openapi.yaml by Tests/Contract/embed.py; a test compares them.

extension OpenAPIDocument {
    static let shapes: String = #"""
            WideChange:
              type: object
              required: [clientid, cv, id, o, ev, ccids]
              properties:
                clientid: { type: string }
                cv: { type: string }
                id: { type: string, description: "The user, a slash, and the object's key." }
                o: { enum: [M, '-'] }
                sv: { type: integer, format: int64, minimum: 1 }
                ev: { type: integer, format: int64, minimum: 1 }
                v: { type: object }
                d: { type: object }
                username: { type: string }
                ccids: { type: array, items: { type: string } }
            Granted:
              type: object
              required: [username, access_token, userid]
              properties:
                username: { type: string }
                access_token: { type: string }
                userid: { type: string }
            AccountError:
              type: object
              required: [code, message, hint]
              properties:
                code: { type: string, description: 'For programs, such as invalid_login or too_many_attempts.' }
                message: { type: string }
                hint: { type: string, description: What to do; no link. }
                version: { type: integer, description: Of a bundle, the one that is there. }
            Key: { type: string, minLength: 43, maxLength: 43, pattern: '^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$' }
            Salt: { type: string, minLength: 22, maxLength: 22, pattern: '^[A-Za-z0-9_-]{21}[AQgw]$' }
            Sealed: { type: string, minLength: 4, maxLength: 1360, pattern: '^([A-Za-z0-9_-]{4})*[A-Za-z0-9_-]{2,4}$' }
            Stretch:
              type: object
              required: [scheme, kdf, n, r, p, salt]
              properties:
                scheme: { const: 1 }
                kdf: { const: 1 }
                n: { type: integer }
                r: { type: integer }
                p: { type: integer }
                salt: { type: string }
            LoggedIn:
              type: object
              required: [userid, access_token, access, bundle, version]
              properties:
                userid: { type: string }
                access_token: { type: string }
                access: { type: [string, 'null'], description: Null while the account is locked. }
                bundle: { type: [string, 'null'] }
                version: { type: integer }
                locked: { const: true }
                before: { type: [object, 'null'], description: How the access key of a locked account was sealed before. }
            Token:
              type: object
              required: [id, created, expires, device, current]
              properties:
                id: { type: string }
                created: { type: integer }
                expires: { type: [integer, 'null'] }
                device: { type: string }
                current: { type: boolean }
            PartnerError:
              type: object
              required: [type, code, message]
              properties:
                type: { type: string }
                code: { type: string, description: A number as text. }
                message: { type: string }
                version: { type: integer, description: Of a bundle, the one that is there. }
            PublicKey: { type: string, minLength: 44, maxLength: 44, pattern: '^[A-Za-z0-9+/]{42}[AEIMQUYcgkosw048]=$' }
            Device:
              type: object
              required: [device_id, first_seen, last_seen]
              properties:
                device_id: { type: string }
                first_seen: { type: integer }
                last_seen: { type: integer }
            PartnerUser:
              type: object
              required: [id, username, sdkEntity, sdkPartner, partnerId, createdAt, updatedAt, enabled, timesLoggedIn, roles, guest]
              properties:
                id: { type: integer }
                username: { type: [string, 'null'] }
                email: { type: [string, 'null'] }
                phone: { type: [string, 'null'] }
                sdkEntity: { type: string }
                sdkPartner: { type: string }
                partnerId: { type: [integer, string] }
                createdAt: { type: string }
                updatedAt: { type: string }
                enabled: { type: boolean }
                timesLoggedIn: { type: integer }
                roles: { type: array, items: { type: object } }
                guest: { type: boolean }
        """#
}
