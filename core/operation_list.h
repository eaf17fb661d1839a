/* Every operation, one line each, in the order of the catalogue: the only line two operations share. OPERATION(name,
 * ID): the row pe_operation_name (core/operation.h) and the constant PE_ID of enum pe_operation_id. */
OPERATION(encode, ENCODE)
OPERATION(rotate, ROTATE)
OPERATION(attend, ATTEND)
