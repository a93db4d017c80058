import ThicketProtocol

// Guests: users that a partner admits before it knows their identity.
extension PartnerService {
    /// `POST /api/v2/authentication/register/guest`, with a registration token, which has the partner's id of the
    /// guest.
    mutating func registerGuest(_ request: HTTPRequest, _ apiKey: String, _ now: Double) throws -> Outcome {
        let (claims, partner) = try read(request, apiKey, .registration, now)
        try verifier.expectLive(claims, now: now)
        _ = try Self.object(request)
        try admitRegistration(of: partner, now: now)
        let profile = try directory.registerGuest(
            partner: partner.id, partnerEntity: claims.partnerEntity, newID: Partner.newID(random: random), now: now)
        return Outcome(PartnerAnswer.user(profile))
    }

    /// `POST /api/v2/authentication/login/guest`, with a login token, which is repeated in the answer, because the
    /// partner makes the tokens of its guests.
    func loginGuest(_ request: HTTPRequest, _ apiKey: String, _ now: Double) throws -> Outcome {
        let user = try login(request, apiKey, now) { _, _ in true }
        let body = try Self.object(request)
        guard let device = body["deviceId"]?.string, same(device, user.pass.device) else {
            throw BadBody("deviceId")
        }
        guard let entity = body["entityId"]?.string, same(entity, user.entity.id) else {
            throw BadBody("entityId")
        }
        guard let profile = try directory.loggedIn(user.entity.id, now: now) else {
            throw TokenRefusal.denied(.owner)
        }
        var response = PartnerAnswer.user(profile)
        response.fields.append("authorization", "Bearer " + user.token)
        return Outcome(response)
    }
}

extension PartnerAnswer {
    /// The user in the form that apps expect; members that are not kept are null.
    static func user(_ profile: Profile) -> HTTPResponse {
        let partner: JSONValue =
            Int64(profile.entity.partner).map { .number(JSONNumber($0)) } ?? .string(profile.entity.partner)
        return success([
            "id": .number(JSONNumber(profile.number)), "username": text(profile.username), "firstName": .null,
            "lastName": .null, "email": text(profile.email), "phone": text(profile.phone), "language": .null,
            "sdkEntity": .string(profile.entity.id), "sdkPartner": .string(profile.entity.partner),
            "partnerId": partner,
            "createdAt": .string(CalendarTime.text(profile.created)),
            "updatedAt": .string(CalendarTime.text(profile.updated)), "enabled": .bool(true),
            "timesLoggedIn": .number(JSONNumber(profile.logins)),
            "roles": .array([.object(["role": .string("ROLE_USER")])]), "guest": .bool(profile.isGuest),
            "accountNonExpired": .bool(true), "accountNonLocked": .bool(true), "credentialsNonExpired": .bool(true),
            "timezone": .null,
        ])
    }

    private static func text(_ text: String) -> JSONValue { text.isEmpty ? .null : .string(text) }
}

/// Dates in the form that apps of partners expect: `2026-11-22T05:21:01`, in UTC, without a zone.
enum CalendarTime {
    /// - Parameter milliseconds: since 1970.
    static func text(_ milliseconds: Int64) -> String {
        let seconds = (milliseconds - (milliseconds % 1_000 + 1_000) % 1_000) / 1_000
        let (days, rest) = seconds.quotientAndRemainder(dividingBy: 86_400)
        let day = rest < 0 ? days - 1 : days
        let time = rest < 0 ? rest + 86_400 : rest
        let (year, month, date) = civil(day)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(date, 2))"
            + "T\(padded(time / 3_600, 2)):\(padded(time / 60 % 60, 2)):\(padded(time % 60, 2))"
    }

    /// Year, month and day of the proleptic Gregorian calendar: eras of 400 years begin in March, so that a leap
    /// day is the last day of a year.
    private static func civil(_ daysSince1970: Int64) -> (Int64, Int64, Int64) {
        let shifted = daysSince1970 + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1_460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let place = (5 * dayOfYear + 2) / 153
        let month = place < 10 ? place + 3 : place - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * place + 2) / 5 + 1)
    }

    private static func padded(_ number: Int64, _ digits: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, digits - text.utf8.count)) + text
    }
}
